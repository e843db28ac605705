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
	// firstMessageTime is how long a connection may take to bring its first STUN message, which says what peer it is
	// for, and how long one lasts whose message names none: with round trips of half a second, the message and two more
	// tries (1 and 2 s later) are there. Whoever knows a peer's name has got it from a peer that is there.
	firstMessageTime = 5 * time.Second
	// maxPeerConnections is how many connections one peer may have: one from each address of its host to each of ours,
	// and those again after an ICE restart.
	maxPeerConnections = 32
	// maxTurnover is how many connections one peer may have until its ICE restarts, those that have ended included:
	// each is a remote address to ICE, which forgets none.
	maxTurnover = description.MaxCandidates
	// connectRate and connectBurst bound the connections of one address: browsers open some even if UDP works, so 250
	// clients behind one NAT that all join within a second open four each. A connection takes some 100 µs until it is
	// known whom it is for, which is 2 % of a core at this rate.
	connectRate, connectBurst = 200, 1000
	// leastPause and mostPause are how long accepting pauses where the system has no descriptor or no memory for
	// another connection.
	leastPause = 5 * time.Millisecond
	mostPause  = time.Second
)

// limits are how many connections there may be, in all, from one address and for one peer, and how long packets may
// wait in one.
type limits struct {
	total, address, peer int
	age                  time.Duration
}

// listener accepts the connections of ICE-TCP. Pion's loop ends for good with the first error that it is given, so
// this one waits where the system lacks something for a while, and gives none but of what cannot come right again.
// Anybody may connect, so strangers, who have not named a peer that there is, make room for others, the oldest first.
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
	// sources count the connections of each address; peers are those that there are, by the names that ICE has for
	// them.
	sources map[netip.Prefix]int
	peers   map[string]*peer
	// connects bounds the connections of each address, checks the STUN messages of its strangers.
	connects, checks ratelimit.Sources
	// strangers are the connections that have not named one of the peers, the oldest first.
	strangers list.List

	refused  [refusals]atomic.Uint64
	unproven atomic.Uint64
	stale    atomic.Uint64
	// unconsented counts packets that were not sent since the remote peer was silent.
	unconsented atomic.Uint64
}

// peer is one ICE generation of a peer that there is. The listener's mutex guards it.
type peer struct {
	// open counts the connections, total those that have ended as well.
	open, total int
	// stun bounds the STUN messages of all connections.
	stun ratelimit.Bucket
}

// admits reports whether the peer may have one more connection.
func (p *peer) admits(limit int) bool { return p.open < limit && p.total < maxTurnover }

// refusal is which limit a connection exceeds.
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
	// Open are those that there are; Strangers are those of them that have not named a peer that there is.
	Open, Strangers int
	// Full, AddressFull and PeerFull were refused since there were as many as may be, from one address, or for one
	// peer; TooOften since one address has connected too often of late. TooManyChecks were ended since they brought
	// STUN messages faster than a peer or an address may.
	Full, AddressFull, PeerFull, TooOften, TooManyChecks uint64
	// Unproven ended before they had named a peer that there is.
	Unproven uint64
	// Stale are packets that were left out since they had waited for too long, or too much waited.
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

// stats counts.
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

// Accept implements net.Listener. Its errors are for good. Config.Failed receives them, except those of closing.
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
		if !passes(err) {
			if !errors.Is(err, net.ErrClosed) {
				l.config.Failed(fmt.Errorf("accept ICE-TCP: %w", err))
			}
			return nil, err
		}
		// What the oldest of the strangers held may be what is lacking.
		l.sendOff(anybody)
		pause = min(max(2*pause, leastPause), mostPause)
		select {
		case <-time.After(pause):
		case <-l.closed:
			return nil, net.ErrClosed
		}
	}
}

// passes reports whether the cause of an error of accept ends by itself after a while: no descriptor is left to the
// process or the system, no memory, or who connected is gone.
func passes(err error) bool {
	for _, lack := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED} {
		if errors.Is(err, lack) {
			return true
		}
	}
	return false
}

// admit counts a connection, and closes it where there is no room.
func (l *listener) admit(inner net.Conn) net.Conn {
	var remote netip.Addr
	if tcp, ok := inner.RemoteAddr().(*net.TCPAddr); ok {
		remote = tcp.AddrPort().Addr()
	}
	source, limited := ratelimit.Source(remote)
	l.mu.Lock()
	often := !l.connects.Take(remote, l.clock())
	crowded, full := limited && l.sources[source] >= l.limits.address, l.open >= l.limits.total
	l.mu.Unlock()
	if often {
		return l.refuse(inner, refusedOften)
	}
	if crowded && !l.sendOff(func(c *connection) bool { return c.source == source }) {
		return l.refuse(inner, refusedAddress)
	}
	if full && !crowded && !l.sendOff(anybody) {
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
	c.heard.Store(l.clock().UnixNano())
	c.place = l.strangers.PushBack(c)
	l.open++
	if limited {
		l.sources[source]++
	}
	return c
}

// refuse closes a connection that there is no room for.
func (l *listener) refuse(inner net.Conn, why refusal) net.Conn {
	l.refused[why].Add(1)
	_ = inner.Close()
	return nil
}

// anybody is no stranger in particular.
func anybody(*connection) bool { return true }

// sendOff closes the connection that has been a stranger for the longest time, of those that are meant, and tells
// whether there was one.
func (l *listener) sendOff(meant func(*connection) bool) bool {
	l.mu.Lock()
	oldest := l.strangers.Front()
	for oldest != nil && !meant(oldest.Value.(*connection)) {
		oldest = oldest.Next()
	}
	l.mu.Unlock()
	if oldest == nil {
		return false
	}
	// It may have named a peer by now; then it has bad luck.
	_ = oldest.Value.(*connection).Close()
	return true
}

// Close implements net.Listener. Strangers end with it: Pion's loop waits for their first messages.
func (l *listener) Close() error {
	l.mu.Lock()
	if !l.ended {
		l.ended = true
		close(l.closed)
	}
	l.mu.Unlock()
	for l.sendOff(anybody) {
	}
	return l.Listener.Close()
}

// know notes a peer that there is. Those who have named it too early are strangers no more.
func (l *listener) know(name string) {
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
			l.prove(c, peer)
		}
	}
}

// forget notes that there is a peer no more.
func (l *listener) forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.peers, name)
}

// greeted takes the name of the peer that a connection is for, and reports whether the peer may have one more. One that
// there is not yet may come within firstMessageTime; Pion ends the connection otherwise.
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
	l.prove(c, peer)
	return true
}

// checked reports whether a connection may bring so many STUN messages more.
func (l *listener) checked(c *connection, messages int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	stun, now := &c.stun, l.clock()
	stranger := c.peer == nil
	if !stranger {
		stun = &c.peer.stun
	}
	for range messages {
		// Strangers of an address must not use up what peers from there may send.
		if !stun.Take(now) || stranger && !l.checks.Take(c.remote, now) {
			l.refused[refusedChecks].Add(1)
			return false
		}
	}
	return true
}

// prove takes a connection off the list of strangers and counts it for its peer. The caller holds the mutex.
func (l *listener) prove(c *connection, peer *peer) {
	l.strangers.Remove(c.place)
	c.place, c.peer = nil, peer
	peer.open++
	peer.total++
}

// gone notes that a connection has ended.
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
