package transport

import (
	"container/list"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/volsfu/volsfu/internal/transport/ratelimit"
)

// tcpBatch is how many bytes the system is handed at once: what has been handed over goes out whatever its age.
const tcpBatch = 16 << 10

// tcpConn is an ICE-TCP connection that counts. Reading is one goroutine's. Writing never waits: a goroutine of the connection's own hands on what the system takes.
type tcpConn struct {
	net.Conn
	listener *tcpListener
	remote   netip.Addr
	// source is the address that the connection counts for if it is limited.
	source  netip.Prefix
	limited bool
	// place is where it stands among the strangers, nil once it has proven to be for a peer that there is; name is the
	// peer that it says to be for, and peer the one that it counts for; stun bounds its STUN messages before that. gone
	// says that it does not count any more. The listener's mutex guards them.
	place *list.Element
	name  string
	peer  *tcpPeer
	stun  ratelimit.Bucket
	gone  bool
	// heard is when something came last, in nanoseconds since 1970.
	heard atomic.Int64
	// greeting and frames are the reader's own. greeting is nil once it is whole.
	greeting *greeting
	frames   frames

	mu    sync.Mutex
	queue tcpQueue
	// writing is set while the goroutine that writes runs, ended once the connection is closed.
	writing, ended bool
}

// Read implements net.Conn, as does Write. Goroutines of Pion's call them: a panic is the end of the connection.
func (c *tcpConn) Read(b []byte) (n int, err error) {
	if !c.try(func() { n, err = c.read(b) }) {
		return 0, errPanicked
	}
	return n, err
}

// Write implements net.Conn.
func (c *tcpConn) Write(b []byte) (n int, err error) {
	if !c.try(func() { n, err = c.enqueue(b) }) {
		return 0, errPanicked
	}
	return n, err
}

// try calls f, and reports whether f returned. If f panics, the connection ends; reading notices.
func (c *tcpConn) try(f func()) (returned bool) {
	returned = c.listener.endpoint.config.Guard.Try(placeTCP, f)
	if !returned {
		_ = c.Conn.Close()
	}
	return returned
}

// read reads, and looks at the first packet. A connection ends if it is for a peer that has too many, or brings too many
// STUN messages: ICE answers each, however fast they come.
func (c *tcpConn) read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.heard.Store(c.listener.clock().UnixNano())
	}
	if messages := c.frames.add(b[:n]); messages > 0 && !c.listener.checked(c, messages) {
		return 0, net.ErrClosed
	}
	if c.greeting == nil || n == 0 {
		return n, err
	}
	name, whole, wrong := c.greeting.add(b[:n])
	if wrong != nil {
		return 0, wrong
	}
	if whole {
		c.greeting = nil
		if !c.listener.greeted(c, name) {
			return 0, net.ErrClosed
		}
	}
	return n, err
}

// enqueue queues one packet, unless it is no STUN message and the remote peer has been silent for consentLife. A peer that
// is there answers the checks that ICE makes of a silent one. Nobody else can send on the connection, so whatever the peer
// sends is its consent.
func (c *tcpConn) enqueue(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return 0, net.ErrClosed
	}
	now := c.listener.clock()
	isSTUN := len(b) > frameHeader && b[frameHeader] <= maxSTUNByte
	if !isSTUN && now.UnixNano()-c.heard.Load() > int64(consentLife) {
		c.listener.unconsented.Add(1)
		return len(b), nil
	}
	before := c.queue.dropped
	c.queue.push(b, now)
	c.listener.stale.Add(c.queue.dropped - before)
	if !c.writing {
		c.writing = true
		go c.try(c.write)
	}
	return len(b), nil
}

// batches are what goroutines that write hand to the system.
var batches = sync.Pool{New: func() any { return new([tcpBatch]byte) }}

// write is the goroutine that hands on what waits, until nothing does.
func (c *tcpConn) write() {
	room := batches.Get().(*[tcpBatch]byte)
	defer batches.Put(room)
	for {
		batch := c.next(room[:0])
		if len(batch) == 0 {
			return
		}
		// If it fails, the connection is at its end, and so will reading notice; what was to go is lost, as on the network.
		if _, err := c.Conn.Write(batch); err != nil {
			_ = c.Close()
		}
	}
}

// next takes what is to be written next. If there is nothing, the goroutine that writes ends.
func (c *tcpConn) next(room []byte) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.queue.dropped
	batch := c.queue.take(room, c.listener.clock())
	c.listener.stale.Add(c.queue.dropped - before)
	if c.ended {
		batch = nil
	}
	c.writing = len(batch) > 0
	return batch
}

// Close implements net.Conn.
func (c *tcpConn) Close() error {
	c.listener.gone(c)
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	return c.Conn.Close()
}
