package icetcp

import (
	"container/list"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/volsfu/volsfu/internal/transport/ratelimit"
)

// batchBytes is how many bytes the system is handed at once: what has been handed over goes out whatever its age.
const batchBytes = 16 << 10

// connection is an ICE-TCP connection that counts. Reading is one goroutine's. Writing never waits: a goroutine of the
// connection's own hands on what the system takes.
type connection struct {
	net.Conn
	listener *listener
	remote   netip.Addr
	// source is the address that the connection counts for if it is limited.
	source  netip.Prefix
	limited bool
	// place is where it stands among the strangers, nil once it has proven to be for a peer that there is; name is the
	// peer that it says to be for, and peer the one that it counts for; stun bounds its STUN messages before that. gone
	// says that it does not count any more. The listener's mutex guards them.
	place *list.Element
	name  string
	peer  *peer
	stun  ratelimit.Bucket
	gone  bool
	// heard is when something came last, in nanoseconds since 1970.
	heard atomic.Int64
	// greeting and frames are the reader's own. greeting is nil once it is whole.
	greeting *greeting
	frames   frames

	mu    sync.Mutex
	queue queue
	// writing is set while the goroutine that writes runs, ended once the connection is closed.
	writing, ended bool
}

// Read implements net.Conn, as does Write. Goroutines of Pion's call them: a panic is the end of the connection.
func (c *connection) Read(b []byte) (n int, err error) {
	if !c.try(func() { n, err = c.read(b) }) {
		return 0, errPanicked
	}
	return n, err
}

// Write implements net.Conn.
func (c *connection) Write(b []byte) (n int, err error) {
	if !c.try(func() { n, err = c.enqueue(b) }) {
		return 0, errPanicked
	}
	return n, err
}

// try calls f, and reports whether f returned. If f panics, the connection ends; reading notices.
func (c *connection) try(f func()) (returned bool) {
	returned = c.listener.config.Guard.Try(PanicPlace, f)
	if !returned {
		_ = c.Conn.Close()
	}
	return returned
}

// read reads, and looks at the first packet. A connection ends if it is for a peer that has too many, or brings too
// many STUN messages: ICE answers each, however fast they come.
func (c *connection) read(b []byte) (int, error) {
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

// enqueue queues one packet, unless it is no STUN message and the remote peer has been silent for Config.Consent. A
// peer that is there answers the checks that ICE makes of a silent one. Nobody else can send on the connection, so
// whatever the peer sends is its consent.
func (c *connection) enqueue(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return 0, net.ErrClosed
	}
	now := c.listener.clock()
	isSTUN := len(b) > frameHeader && b[frameHeader] <= maxSTUNByte
	if !isSTUN && now.UnixNano()-c.heard.Load() > int64(c.listener.config.Consent) {
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
var batches = sync.Pool{New: func() any { return new([batchBytes]byte) }}

// write is the goroutine that hands on what waits, until nothing does.
func (c *connection) write() {
	room := batches.Get().(*[batchBytes]byte)
	defer batches.Put(room)
	for {
		batch := c.next(room[:0])
		if len(batch) == 0 {
			return
		}
		// If it fails, the connection is at its end, and so will reading notice; what was to go is lost, as on the
		// network.
		if _, err := c.Conn.Write(batch); err != nil {
			_ = c.Close()
		}
	}
}

// next takes what is to be written next. If there is nothing, the goroutine that writes ends.
func (c *connection) next(room []byte) []byte {
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
func (c *connection) Close() error {
	c.listener.gone(c)
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	return c.Conn.Close()
}
