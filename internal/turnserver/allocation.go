package turnserver

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/pion/turn/v5"
)

// relayBuffer is the receive buffer of an allocation's socket in bytes. It holds what the server sends while the
// client's connection takes nothing: some 450 packets, 0.4 s at 10 Mbit/s. Packets beyond it are dropped.
const relayBuffer = 1 << 20

// errUnavailable is the error for allocations that the server does not make.
var errUnavailable = errors.New("not available")

// allocation is the relayed address of one client. Pion's goroutines call it. allocation implements net.PacketConn.
type allocation struct {
	*net.UDPConn
	server *Server
	user   user
	// told is the relayed address that the client is told.
	told netip.AddrPort
	// peer is the address of the media port that the client uses, nil until the client has sent to it. Other addresses
	// of the media port lead to the same socket, which could not tell them apart in what it receives. Packets to them
	// are dropped.
	peer atomic.Pointer[net.UDPAddr]
	once sync.Once
}

// allocator implements turn.RelayAddressGenerator.
type allocator struct{ *Server }

// Validate implements turn.RelayAddressGenerator.
func (allocator) Validate() error { return nil }

// AllocateListener and AllocateConn refuse connections to peers (RFC 6062).
func (allocator) AllocateListener(turn.AllocateListenerConfig) (net.Listener, net.Addr, error) {
	return nil, nil, errUnavailable
}

func (allocator) AllocateConn(turn.AllocateConnConfig) (net.Conn, error) { return nil, errUnavailable }

// AllocatePacketConn implements turn.RelayAddressGenerator. Pion calls it without a user for EVEN-PORT, which the
// server does not offer.
func (a allocator) AllocatePacketConn(c turn.AllocateListenerConfig) (conn net.PacketConn, told net.Addr, err error) {
	err = errUnavailable
	a.guard.Try(PanicPlace, func() { conn, told, err = a.take(c) })
	return conn, told, err
}

// take is AllocatePacketConn without the guard.
func (a allocator) take(c turn.AllocateListenerConfig) (net.PacketConn, net.Addr, error) {
	s := a.Server
	u, ok := parseUser(c.UserID)
	if !ok || c.RequestedPort != 0 {
		return nil, nil, errUnavailable
	}
	if refused := s.quotas.take(u); refused != "" {
		s.refuse(refused)
		return nil, nil, fmt.Errorf("%w: %s", errUnavailable, refused)
	}
	made, err := s.allocate(u, c.Network == "udp6")
	if err != nil {
		s.quotas.release(u)
		return nil, nil, err
	}
	return made, net.UDPAddrFromAddrPort(made.told), nil
}

// allocate opens the socket of an allocation.
func (s *Server) allocate(u user, ipv6 bool) (*allocation, error) {
	local, told, err := s.addresses(ipv6)
	if err != nil {
		return nil, err
	}
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(local))
	if err != nil {
		return nil, err
	}
	// The system's limit holds if it is lower.
	_ = conn.SetReadBuffer(relayBuffer)
	actual := conn.LocalAddr().(*net.UDPAddr).AddrPort()
	actual = netip.AddrPortFrom(actual.Addr().Unmap(), actual.Port())
	made := &allocation{UDPConn: conn, server: s, user: u, told: netip.AddrPortFrom(told, actual.Port())}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.allocations[made.told] = made
	return made, nil
}

// addresses returns the address of the media port on this host, and the relayed address for clients without its port.
func (s *Server) addresses(ipv6 bool) (local netip.AddrPort, told netip.Addr, err error) {
	local = s.media.LocalAddress()
	bound := local.Addr()
	switch {
	case ipv6 && bound.Is4() || !ipv6 && !bound.Is4() && bound != netip.IPv6Unspecified():
		return local, told, fmt.Errorf("%w: the media port has another address family", errUnavailable)
	case bound.IsUnspecified() && ipv6:
		bound = netip.IPv6Loopback()
	case bound.IsUnspecified():
		bound = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	told = bound
	for _, address := range s.media.Addresses() {
		if address.Addr().Is4() != ipv6 {
			told = address.Addr()
			break
		}
	}
	return netip.AddrPortFrom(bound, local.Port()), told, nil
}

// ReadFrom returns a packet from the media port.
func (a *allocation) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		n, err := a.Read(b)
		if errors.Is(err, syscall.ECONNREFUSED) {
			// The media port was closed for a moment.
			continue
		}
		if err != nil {
			return 0, nil, err
		}
		if peer := a.peer.Load(); peer != nil {
			a.server.down.add(n)
			return n, peer, nil
		}
	}
}

// WriteTo sends a packet of the client to the media port. Packets to other addresses are dropped.
func (a *allocation) WriteTo(b []byte, to net.Addr) (int, error) {
	address, ok := to.(*net.UDPAddr)
	if !ok {
		return 0, net.InvalidAddrError("expected a UDP address, not " + to.String())
	}
	peer := a.peer.Load()
	if peer == nil || peer.Port != address.Port || !peer.IP.Equal(address.IP) {
		if !a.server.isMedia(unmapped(address.AddrPort())) {
			a.server.refuse(refusedPeer)
			return len(b), nil
		}
		if peer != nil || !a.peer.CompareAndSwap(nil, address) {
			return len(b), nil
		}
	}
	a.server.up.add(len(b))
	// A packet that cannot be sent is lost, as on the network.
	_, _ = a.Write(b)
	return len(b), nil
}

// Close closes the socket and releases the user's place.
func (a *allocation) Close() error {
	a.once.Do(func() {
		s := a.server
		s.mu.Lock()
		delete(s.allocations, a.told)
		s.mu.Unlock()
		s.quotas.release(a.user)
	})
	return a.UDPConn.Close()
}

// unmapped returns an address whose IPv4 address is not mapped to IPv6.
func unmapped(address netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(address.Addr().Unmap(), address.Port())
}
