package icetcp

import (
	"container/list"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/volsfu/volsfu/internal/transport/ratelimit"
)

// batchBytes is the size of one write. Bytes that the system has accepted are sent regardless of their age.
const batchBytes = 16 << 10

// connection is an accepted ICE-TCP connection. One goroutine reads. Write never waits: a goroutine of the connection
// writes the queued packets.
type connection struct {
	net.Conn
	listener *listener
	remote   netip.Addr
	// source is the address that the connection counts for, if limited is set.
	source  netip.Prefix
	limited bool
	// place is the connection's element in the list of strangers, nil once the connection belongs to a known peer. name
	// is the peer in the greeting. peer is the known peer that the connection counts for. stun limits the STUN messages
	// before that. gone is set once the connection is no longer counted. The listener's mutex guards these fields.
	place *list.Element
	name  string
	peer  *peer
	stun  ratelimit.Bucket
	gone  bool
	// received is the time at which bytes last arrived, in nanoseconds since 1970.
	received atomic.Int64
	// greeting and frames belong to the reader. greeting is nil once it is complete.
	greeting *greeting
	frames   frames

	mu    sync.Mutex
	queue queue
	// writing is set while the writing goroutine runs, ended once the connection is closed.
	writing, ended bool
}

// Read implements net.Conn. Pion's goroutines call Read and Write. A panic ends the connection.
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

// try calls f and reports whether f returned. If f panics, the connection is closed, and reading returns an error.
func (c *connection) try(f func()) (returned bool) {
	returned = c.listener.config.Guard.Try(PanicPlace, f)
	if !returned {
		_ = c.Conn.Close()
	}
	return returned
}

// read reads bytes and examines the first packet. The connection ends if its peer has too many connections, or if STUN
// messages exceed the rate limit: ICE answers every message.
func (c *connection) read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.received.Store(c.listener.clock().UnixNano())
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

// enqueue queues one packet. A packet that is not STUN is dropped if the remote peer has been silent for
// Config.Consent. ICE sends checks to a silent peer, and a reachable peer answers them. Only the remote peer can send
// on the connection, so all its packets show consent.
func (c *connection) enqueue(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return 0, net.ErrClosed
	}
	now := c.listener.clock()
	isSTUN := len(b) > frameHeader && b[frameHeader] <= maxSTUNByte
	if !isSTUN && now.UnixNano()-c.received.Load() > int64(c.listener.config.Consent) {
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

// batches are the buffers of the writing goroutines.
var batches = sync.Pool{New: func() any { return new([batchBytes]byte) }}

// write is the goroutine that writes queued packets until none are left.
func (c *connection) write() {
	room := batches.Get().(*[batchBytes]byte)
	defer batches.Put(room)
	for {
		batch := c.next(room[:0])
		if len(batch) == 0 {
			return
		}
		// If the write fails, the connection has ended, and reading returns an error, too. The batch is lost, as on the
		// network.
		if _, err := c.Conn.Write(batch); err != nil {
			_ = c.Close()
		}
	}
}

// next returns the next batch. If there is none, the writing goroutine ends.
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
