package netem

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/volsfu/volsfu/internal/netem/agenda"
)

// Errors of a Network.
var (
	// ErrAddress is the sentinel of unusable addresses; the wrapping error has the expected one.
	ErrAddress = errors.New("invalid address")
	// ErrAddressInUse is the sentinel of an address on which another Conn listens.
	ErrAddressInUse = errors.New("address in use")
)

// firstEphemeralPort is the start of the dynamic ports (RFC 6335), used if the caller specifies no port.
const firstEphemeralPort = 49152

// Network is an in-memory IP network. Every address is a host; every host may have an access link, up and down, shared
// by all its sockets. A packet passes the uplink of its source, then the downlink of its destination; there is no delay
// for hosts without an access link, and for packets from a host to itself. In a conference every client has an access
// link and the server has none, and the round trip between them is the client's up delay + down delay.
//
// All methods may be called from any goroutine. A Network created inside a testing/synctest bubble runs in virtual
// time, which is exact. In real time packets are as late as Go's timers, up to about 1 ms in an idle process (its
// poller waits whole milliseconds) and less in a busy one. Lateness does not accumulate, because a packet enters its
// second link at the time at which it should have left the first.
type Network struct {
	seed    uint64
	timer   *time.Timer // set to the next event
	closing chan struct{}
	stopped chan struct{}

	mu      sync.Mutex // held while packets move; taken before the mutex of a Conn
	hosts   map[netip.Addr]*host
	pending agenda.Agenda[*hop]
	alarm   time.Time // setting of timer, zero if it is stopped
	stats   NetworkStats
	closed  bool
}

// NetworkStats counts packets outside of access links.
type NetworkStats struct {
	// Unreachable counts packets to an address without a listener.
	Unreachable uint64
}

// host is one address. Its links are nil without an access link.
type host struct {
	up, down *hop
	conns    map[uint16]*Conn
	nextPort uint16
}

// NewNetwork returns a network without hosts, and starts the delivering goroutine. Random decisions depend only on the
// seed, the host's address and the direction, not on the order in which hosts appear. Close ends the goroutine.
func NewNetwork(seed uint64) *Network {
	n := &Network{
		seed:    seed,
		timer:   time.NewTimer(time.Hour),
		closing: make(chan struct{}),
		stopped: make(chan struct{}),
		hosts:   make(map[netip.Addr]*host),
	}
	n.timer.Stop()
	go n.deliver()
	return n
}

// SetAccess sets the access link of a host: up for packets from the host, down for packets to the host. If there is one
// already, its parameters are changed as by Link.Reconfigure, with packets in transit. The error wraps ErrConfig or
// ErrAddress, or is net.ErrClosed.
func (n *Network) SetAccess(addr netip.Addr, up, down Config) error {
	addr, err := usableAddr(addr)
	if err != nil {
		return err
	}
	if err := up.Validate(); err != nil {
		return fmt.Errorf("uplink of %s: %w", addr, err)
	}
	if err := down.Validate(); err != nil {
		return fmt.Errorf("downlink of %s: %w", addr, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return net.ErrClosed
	}
	now := time.Now()
	n.step(now)
	h := n.host(addr)
	if err := cmp.Or(h.up.admits(up), h.down.admits(down)); err != nil {
		return fmt.Errorf("%s: %w", addr, err)
	}
	n.configure(&h.up, Up, addr, up, now)
	n.configure(&h.down, Down, addr, down, now)
	n.setAlarm(now)
	return nil
}

// configure makes or changes one hop with valid parameters.
func (n *Network) configure(h **hop, d Direction, addr netip.Addr, cfg Config, now time.Time) {
	var err error
	if *h == nil {
		*h = &hop{direction: d}
		(*h).link, err = NewLink(cfg, mixAddr(n.seed^mix(uint64(d)), addr), nil)
	} else {
		err = (*h).link.Reconfigure(cfg, now)
	}
	if err != nil {
		panic(fmt.Sprintf("netem: parameters were valid and are refused: %v", err))
	}
	n.schedule(*h)
}

// AccessStats returns the counters of a host's access link, zero if it has none.
func (n *Network) AccessStats(addr netip.Addr) (up, down Stats) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if h := n.hosts[addr.Unmap()]; h != nil && h.up != nil {
		up, down = h.up.link.Stats(), h.down.link.Stats()
	}
	return up, down
}

// Stats returns the counters of the network.
func (n *Network) Stats() NetworkStats {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.stats
}

// Listen opens a socket on a host. The address must be that of one host, neither unspecified nor multicast; port 0
// selects a free one. The error wraps ErrAddress or ErrAddressInUse, or is net.ErrClosed.
func (n *Network) Listen(local netip.AddrPort) (*Conn, error) {
	addr, err := usableAddr(local.Addr())
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, net.ErrClosed
	}
	h := n.host(addr)
	port := local.Port()
	if port == 0 {
		if port = h.freePort(); port == 0 {
			return nil, fmt.Errorf("%w: no free port on %s", ErrAddressInUse, addr)
		}
	}
	if h.conns[port] != nil {
		return nil, fmt.Errorf("%w: %s", ErrAddressInUse, netip.AddrPortFrom(addr, port))
	}
	c := newConn(n, netip.AddrPortFrom(addr, port))
	h.conns[port] = c
	return c, nil
}

// Close closes all sockets, drops all packets and waits for the goroutine to end.
func (n *Network) Close() error {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return net.ErrClosed
	}
	n.closed = true
	for _, h := range n.hosts {
		for _, c := range h.conns {
			c.shut()
		}
	}
	n.timer.Stop()
	close(n.closing)
	n.mu.Unlock()
	<-n.stopped
	return nil
}

func usableAddr(addr netip.Addr) (netip.Addr, error) {
	if addr = addr.Unmap().WithZone(""); !addr.IsValid() || addr.IsUnspecified() || addr.IsMulticast() {
		return addr, fmt.Errorf("%w: %s, expected the address of one host", ErrAddress, addr)
	}
	return addr, nil
}

// host returns the host with the address, and creates it if necessary.
func (n *Network) host(addr netip.Addr) *host {
	h := n.hosts[addr]
	if h == nil {
		h = &host{conns: make(map[uint16]*Conn), nextPort: firstEphemeralPort}
		n.hosts[addr] = h
	}
	return h
}

// freePort returns the next unused dynamic port, 0 if there is none.
func (h *host) freePort() uint16 {
	for range 1<<16 - firstEphemeralPort {
		port := h.nextPort
		if h.nextPort++; h.nextPort == 0 {
			h.nextPort = firstEphemeralPort
		}
		if h.conns[port] == nil {
			return port
		}
	}
	return 0
}

// forget removes a socket from the network.
func (n *Network) forget(c *Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.hosts[c.local.Addr()].conns, c.local.Port())
}
