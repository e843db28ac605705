package transport

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/pion/ice/v4"
	"github.com/pion/stun/v4"

	"github.com/volsfu/volsfu/internal/description"
)

// maxRemoteAddresses is from how many addresses checks of one remote peer are taken before ICE begins anew, as many as it may name candidates. ICE makes a candidate of each
// address that a check comes from, pairs it with its own, and has checks sent there: a remote peer that sends from all its ports, or says to be others, would have it
// look through as many pairs each checkInterval, and send to whoever it likes.
const maxRemoteAddresses = description.MaxCandidates

// errPlainMux says that Pion's mux makes connections of another kind than it did.
var errPlainMux = errors.New("connection of the ICE mux has no addresses")

// limitedMux is a mux of Pion's whose connections take checks from so many addresses.
type limitedMux struct {
	ice.UDPMux
	refused atomic.Uint64

	mu sync.Mutex
	// remotes are those of each agent, by the name that ICE has for it.
	remotes map[string]*remoteAddresses
}

// remoteAddresses are those that checks for one agent have come from.
type remoteAddresses struct {
	mu    sync.Mutex
	known map[netip.AddrPort]struct{}
}

func newLimitedMux(inner ice.UDPMux) *limitedMux {
	return &limitedMux{UDPMux: inner, remotes: make(map[string]*remoteAddresses)}
}

// GetConn implements ice.UDPMux.
func (m *limitedMux) GetConn(ufrag string, local net.Addr) (net.PacketConn, error) {
	conn, err := m.UDPMux.GetConn(ufrag, local)
	if err != nil {
		return nil, err
	}
	inner, ok := conn.(addressedConn)
	if !ok {
		return nil, errors.Join(errPlainMux, conn.Close())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	remotes := m.remotes[ufrag]
	if remotes == nil {
		remotes = &remoteAddresses{known: make(map[netip.AddrPort]struct{})}
		m.remotes[ufrag] = remotes
	}
	return &limitedConn{addressedConn: inner, mux: m, remotes: remotes}, nil
}

// RemoveConnByUfrag implements ice.UDPMux.
func (m *limitedMux) RemoveConnByUfrag(ufrag string) {
	m.mu.Lock()
	delete(m.remotes, ufrag)
	m.mu.Unlock()
	m.UDPMux.RemoveConnByUfrag(ufrag)
}

// addressedConn is what Pion's mux gives.
type addressedConn interface {
	net.PacketConn
	ice.AddrPortReaderWriter
}

// limitedConn passes checks from so many addresses.
type limitedConn struct {
	addressedConn
	mux     *limitedMux
	remotes *remoteAddresses
}

// ReadFromAddrPort implements ice.AddrPortReaderWriter.
func (c *limitedConn) ReadFromAddrPort(b []byte) (int, netip.AddrPort, error) {
	for {
		n, from, err := c.addressedConn.ReadFromAddrPort(b)
		if err != nil || !stun.IsMessage(b[:n]) || c.remotes.admit(from) {
			return n, from, err
		}
		c.mux.refused.Add(1)
	}
}

// ReadFrom implements net.PacketConn.
func (c *limitedConn) ReadFrom(b []byte) (int, net.Addr, error) {
	n, from, err := c.ReadFromAddrPort(b)
	if err != nil {
		return 0, nil, err
	}
	return n, net.UDPAddrFromAddrPort(from), nil
}

// admit tells whether checks from an address are taken.
func (r *remoteAddresses) admit(from netip.AddrPort) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.known[from]; known {
		return true
	}
	if len(r.known) >= maxRemoteAddresses {
		return false
	}
	r.known[from] = struct{}{}
	return true
}
