package icetcp

import (
	"container/list"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/volsfu/volsfu/internal/description"
	"github.com/volsfu/volsfu/internal/panics"
	"github.com/volsfu/volsfu/internal/transport/ratelimit"
)

const (
	// firstMessageTime is the time within which a connection must bring its first STUN message, which names the peer,
	// and the lifetime of a connection whose first message names no known peer. With round trips of half a second, the
	// message and two repetitions (1 and 2 s later) arrive in this time. A client that knows a peer's name has received
	// it from that peer, so the peer exists.
	firstMessageTime = 5 * time.Second
	// maxPeerConnections is the number of connections of one peer: one from each address of its host to each address of
	// this host, and the same again after an ICE restart.
	maxPeerConnections = 32
	// maxTurnover is the number of connections of one peer until its ICE restarts, ended ones included. Each connection
	// is a remote address for ICE, which keeps all of them.
	maxTurnover = description.MaxCandidates
	// connectRate and connectBurst limit the connections of one address. Browsers open some connections even if UDP
	// works: 250 clients behind one NAT that all join within a second open four each. A connection takes some 100 µs
	// until its peer is known, which is 2 % of a core at this rate.
	connectRate, connectBurst = 200, 1000
	// leastPause and mostPause bound the pause of accepting while the system lacks descriptors or memory.
	leastPause = 5 * time.Millisecond
	mostPause  = time.Second
)

// limits are the limits of connections in all, from one address and for one peer, and of the time that a packet waits.
type limits struct {
	total, address, peer int
	age                  time.Duration
}

// listener accepts ICE-TCP connections. The first error of Accept ends Pion's accept loop for good. Accept therefore
// waits while the system lacks a resource, and returns only permanent errors. Every host may connect. A stranger, which
// is a connection that has not named a known peer, is closed to make room for a new connection, the oldest first.
type listener struct {
	net.Listener
	config Config
	limits limits
	clock  func() time.Time
	// closed is closed with the listener.
	closed chan struct{}

	mu    sync.Mutex
	ended bool
	open  int
	// sources counts the connections of each address. peers are the known peers, by ICE user name fragment.
	sources map[netip.Prefix]int
	peers   map[string]*peer
	// connects limits the connections of each address, checks the STUN messages of its strangers.
	connects, checks ratelimit.Sources
	// strangers are the connections that have not named a known peer, the oldest first.
	strangers list.List

	refused  [refusals]atomic.Uint64
	unproven atomic.Uint64
	stale    atomic.Uint64
	// unconsented counts packets that were not sent because the remote peer was silent.
	unconsented atomic.Uint64
}

// peer is one ICE generation of a known peer. The listener's mutex guards it.
type peer struct {
	// open counts the open connections, total all connections.
	open, total int
	// stun limits the STUN messages of all connections.
	stun ratelimit.Bucket
}

// admits reports whether the peer may have one more connection.
func (p *peer) admits(limit int) bool { return p.open < limit && p.total < maxTurnover }

// refusal identifies the limit that a connection exceeds.
type refusal int

const (
	refusedFull refusal = iota
	refusedAddress
	refusedPeer
	refusedOften
	refusedChecks
	refusals
)

// Stats are the counts of an endpoint's ICE-TCP connections.
type Stats struct {
	// Open is the number of open connections, Strangers the number of open connections that have not named a known
	// peer.
	Open, Strangers int
	// Full, AddressFull and PeerFull count connections that were refused because the limit in all, of the address, or
	// of the peer was reached. TooOften counts connections that were refused because their address connected too often.
	// TooManyChecks counts connections that were closed because the STUN messages of the peer or address exceeded the
	// rate limit.
	Full, AddressFull, PeerFull, TooOften, TooManyChecks uint64
	// Unproven counts connections that ended before they had named a known peer.
	Unproven uint64
	// Stale counts packets that were dropped because they had waited too long or the queue was full.
	Stale uint64
}

// newListener makes a listener with limits.
func newListener(inner net.Listener, config Config, limits limits) *listener {
	return &listener{
		Listener: inner, config: config, limits: limits, clock: time.Now, closed: make(chan struct{}),
		sources: make(map[netip.Prefix]int), peers: make(map[string]*peer),
		connects: ratelimit.NewSources(connectRate, connectBurst), checks: config.AddressChecks.Sources(),
	}
}

// stats returns the counts.
func (l *listener) stats() Stats {
	l.mu.Lock()
	open, strangers := l.open, l.strangers.Len()
	l.mu.Unlock()
	return Stats{
		Open: open, Strangers: strangers, Unproven: l.unproven.Load(), Stale: l.stale.Load(),
		Full: l.refused[refusedFull].Load(), AddressFull: l.refused[refusedAddress].Load(),
		PeerFull: l.refused[refusedPeer].Load(),
		TooOften: l.refused[refusedOften].Load(), TooManyChecks: l.refused[refusedChecks].Load(),
	}
}

// Accept implements net.Listener. Its errors are permanent. Config.Failed receives the errors, except net.ErrClosed.
func (l *listener) Accept() (net.Conn, error) {
	pause := time.Duration(0)
	for {
		inner, err := l.Listener.Accept()
		if err == nil {
			pause = 0
			if c := l.admit(inner); c != nil {
				return c, nil
			}
			continue
		}
		if !isTemporary(err) {
			if !errors.Is(err, net.ErrClosed) {
				l.config.Failed(fmt.Errorf("accept ICE-TCP: %w", err))
			}
			return nil, err
		}
		// The oldest stranger may hold the resource that the system lacks.
		l.closeOldest(anyStranger)
		pause = min(max(2*pause, leastPause), mostPause)
		select {
		case <-time.After(pause):
		case <-l.closed:
			return nil, net.ErrClosed
		}
	}
}

// isTemporary reports whether an error of accept is temporary: the process or the system has no descriptor left, the
// system has no memory left, or the client has closed the connection.
func isTemporary(err error) bool {
	for _, lack := range []error{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED,
	} {
		if errors.Is(err, lack) {
			return true
		}
	}
	return false
}

// admit counts a connection. If there is no room, it closes the connection and returns nil.
func (l *listener) admit(inner net.Conn) net.Conn {
	var remote netip.Addr
	if tcp, ok := inner.RemoteAddr().(*net.TCPAddr); ok {
		remote = tcp.AddrPort().Addr()
	}
	source, limited := ratelimit.Source(remote)
	l.mu.Lock()
	often := !l.connects.Take(remote, l.clock())
	addressFull, full := limited && l.sources[source] >= l.limits.address, l.open >= l.limits.total
	l.mu.Unlock()
	if often {
		return l.refuse(inner, refusedOften)
	}
	if addressFull && !l.closeOldest(func(c *connection) bool { return c.source == source }) {
		return l.refuse(inner, refusedAddress)
	}
	if full && !addressFull && !l.closeOldest(anyStranger) {
		return l.refuse(inner, refusedFull)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		_ = inner.Close()
		return nil
	}
	tune(inner)
	c := &connection{
		Conn: inner, listener: l, remote: remote, source: source, limited: limited, greeting: new(greeting),
		queue: queue{age: l.limits.age, limit: queueBytes}, stun: l.config.PeerChecks.Bucket(),
	}
	c.received.Store(l.clock().UnixNano())
	c.place = l.strangers.PushBack(c)
	l.open++
	if limited {
		l.sources[source]++
	}
	return c
}

// refuse counts and closes a connection that exceeds a limit.
func (l *listener) refuse(inner net.Conn, why refusal) net.Conn {
	l.refused[why].Add(1)
	_ = inner.Close()
	return nil
}

// anyStranger selects all strangers.
func anyStranger(*connection) bool { return true }

// closeOldest closes the oldest of the selected strangers, and reports whether there was one.
func (l *listener) closeOldest(selects func(*connection) bool) bool {
	l.mu.Lock()
	oldest := l.strangers.Front()
	for oldest != nil && !selects(oldest.Value.(*connection)) {
		oldest = oldest.Next()
	}
	l.mu.Unlock()
	if oldest == nil {
		return false
	}
	// The connection may have named a peer in the meantime. It is closed in any case.
	_ = oldest.Value.(*connection).Close()
	return true
}

// Close implements net.Listener. Strangers are closed, because Pion's loop waits for their first messages.
func (l *listener) Close() error {
	l.mu.Lock()
	if !l.ended {
		l.ended = true
		close(l.closed)
	}
	l.mu.Unlock()
	for l.closeOldest(anyStranger) {
	}
	return l.Listener.Close()
}

// addPeer adds a known peer. Strangers that have named the peer before now count for it.
func (l *listener) addPeer(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.peers[name]; known {
		return
	}
	peer := &peer{stun: l.config.PeerChecks.Bucket()}
	l.peers[name] = peer
	for at := l.strangers.Front(); at != nil; {
		c := at.Value.(*connection)
		at = at.Next()
		if c.name == name && peer.admits(l.limits.peer) {
			l.assignPeer(c, peer)
		}
	}
}

// removePeer removes a known peer.
func (l *listener) removePeer(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.peers, name)
}

// greeted sets the peer that a connection is for, and reports whether the peer may have one more connection. An unknown
// peer may become known within firstMessageTime. Otherwise Pion closes the connection.
func (l *listener) greeted(c *connection, name string) bool {
	defer panics.Shared()
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.gone {
		return false
	}
	c.name = name
	peer := l.peers[name]
	if peer == nil {
		return true
	}
	if !peer.admits(l.limits.peer) {
		l.refused[refusedPeer].Add(1)
		return false
	}
	l.assignPeer(c, peer)
	return true
}

// checked reports whether a connection may bring the given number of further STUN messages.
func (l *listener) checked(c *connection, messages int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	stun, now := &c.stun, l.clock()
	stranger := c.peer == nil
	if !stranger {
		stun = &c.peer.stun
	}
	for range messages {
		// Strangers of an address must not use up the limit of known peers at that address.
		if !stun.Take(now) || stranger && !l.checks.Take(c.remote, now) {
			l.refused[refusedChecks].Add(1)
			return false
		}
	}
	return true
}

// assignPeer removes a connection from the list of strangers and counts it for its peer. The caller holds the mutex.
func (l *listener) assignPeer(c *connection, peer *peer) {
	l.strangers.Remove(c.place)
	c.place, c.peer = nil, peer
	peer.open++
	peer.total++
}

// gone records the end of a connection.
func (l *listener) gone(c *connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.gone {
		return
	}
	c.gone = true
	l.open--
	if c.limited {
		if l.sources[c.source]--; l.sources[c.source] == 0 {
			delete(l.sources, c.source)
		}
	}
	if c.place != nil {
		l.strangers.Remove(c.place)
		c.place = nil
		if !l.ended {
			l.unproven.Add(1)
		}
	}
	if c.peer != nil {
		c.peer.open--
	}
}
