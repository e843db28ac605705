package puppet

import (
	"net"
	"sync"
	"sync/atomic"
)

// life ends once, for everything that hangs on it.
type life struct {
	over atomic.Bool
	// freed wakes who waits for what will never come.
	freed chan struct{}
	once  sync.Once
}

func newLife() *life { return &life{freed: make(chan struct{})} }

// free lets readers of dead connections return.
func (l *life) free() { l.once.Do(func() { close(l.freed) }) }

// mortalConn is a TCP connection that may stop without a goodbye: the socket stays open, and nothing passes any more.
type mortalConn struct {
	net.Conn
	life *life
}

// Write loses what is written after death.
func (c *mortalConn) Write(b []byte) (int, error) {
	if c.life.over.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// Read takes nothing from the socket after death.
func (c *mortalConn) Read(b []byte) (int, error) {
	if c.life.over.Load() {
		<-c.life.freed
		return 0, net.ErrClosed
	}
	return c.Conn.Read(b)
}

// mortalPacketConn is a UDP socket that may stop without a goodbye.
type mortalPacketConn struct {
	net.PacketConn
	life *life
}

// WriteTo loses what is written after death.
func (c *mortalPacketConn) WriteTo(b []byte, to net.Addr) (int, error) {
	if c.life.over.Load() {
		return len(b), nil
	}
	return c.PacketConn.WriteTo(b, to)
}

// ReadFrom passes over what arrives after death.
func (c *mortalPacketConn) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		n, from, err := c.PacketConn.ReadFrom(b)
		if err != nil || !c.life.over.Load() {
			return n, from, err
		}
	}
}
