package hardening

import (
	"net"
	"sync"
	"time"
)

// delayedConn delays the datagrams of a packet connection by the same time in each direction, like a long path.
type delayedConn struct {
	net.PacketConn
	delay   time.Duration
	in, out chan delayedDatagram
	closed  chan struct{}
	once    sync.Once
	running sync.WaitGroup
}

type delayedDatagram struct {
	data []byte
	peer net.Addr
	due  time.Time
}

// delayedQueue is the capacity of each direction, in datagrams: 60 ms at 100 Mbit/s in datagrams of 1,200 bytes are
// 625.
const delayedQueue = 4096

func newDelayedConn(inner net.PacketConn, delay time.Duration) *delayedConn {
	c := &delayedConn{
		PacketConn: inner, delay: delay, closed: make(chan struct{}),
		in: make(chan delayedDatagram, delayedQueue), out: make(chan delayedDatagram, delayedQueue),
	}
	c.running.Go(c.read)
	c.running.Go(c.write)
	return c
}

// read is the goroutine that reads the inner connection.
func (c *delayedConn) read() {
	defer close(c.in)
	for {
		data := make([]byte, 2048)
		n, from, err := c.PacketConn.ReadFrom(data)
		if err != nil {
			return
		}
		select {
		case c.in <- delayedDatagram{data[:n], from, time.Now().Add(c.delay)}:
		default:
		}
	}
}

// write is the goroutine that writes to the inner connection.
func (c *delayedConn) write() {
	for {
		select {
		case d := <-c.out:
			time.Sleep(time.Until(d.due))
			_, _ = c.PacketConn.WriteTo(d.data, d.peer)
		case <-c.closed:
			return
		}
	}
}

// ReadFrom implements net.PacketConn.
func (c *delayedConn) ReadFrom(b []byte) (int, net.Addr, error) {
	d, open := <-c.in
	if !open {
		return 0, nil, net.ErrClosed
	}
	time.Sleep(time.Until(d.due))
	return copy(b, d.data), d.peer, nil
}

// WriteTo implements net.PacketConn. A datagram is lost if the queue is full.
func (c *delayedConn) WriteTo(b []byte, to net.Addr) (int, error) {
	select {
	case c.out <- delayedDatagram{append([]byte(nil), b...), to, time.Now().Add(c.delay)}:
	default:
	}
	return len(b), nil
}

// Close implements net.PacketConn.
func (c *delayedConn) Close() error {
	err := c.PacketConn.Close()
	c.once.Do(func() { close(c.closed) })
	c.running.Wait()
	return err
}
