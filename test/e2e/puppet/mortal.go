package puppet

import (
	"net"
	"sync"
	"sync/atomic"
)

// life is the common lifetime of a puppet's connections, which ends once.
type life struct {
	over atomic.Bool
	// freed unblocks goroutines that wait on dead connections.
	freed chan struct{}
	once  sync.Once
}

func newLife() *life { return &life{freed: make(chan struct{})} }

// free lets readers of dead connections return.
func (l *life) free() { l.once.Do(func() { close(l.freed) }) }

// mortalConn is a TCP connection that can be stopped without being closed: the socket stays open, but no more data
// passes.
type mortalConn struct {
	net.Conn
	life *life
}

// Write discards data after death.
func (c *mortalConn) Write(b []byte) (int, error) {
	if c.life.over.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// Read reads nothing from the socket after death.
func (c *mortalConn) Read(b []byte) (int, error) {
	if c.life.over.Load() {
		<-c.life.freed
		return 0, net.ErrClosed
	}
	return c.Conn.Read(b)
}

// mortalPacketConn is a UDP socket that can be stopped without being closed.
type mortalPacketConn struct {
	net.PacketConn
	life *life
}

// WriteTo discards data after death.
func (c *mortalPacketConn) WriteTo(b []byte, to net.Addr) (int, error) {
	if c.life.over.Load() {
		return len(b), nil
	}
	return c.PacketConn.WriteTo(b, to)
}

// ReadFrom ignores data that arrives after death.
func (c *mortalPacketConn) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		n, from, err := c.PacketConn.ReadFrom(b)
		if err != nil || !c.life.over.Load() {
			return n, from, err
		}
	}
}
