// Package transporttest has sockets for tests of peer connections without a network.
package transporttest

import (
	"maps"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Blackhole is a net.PacketConn that receives nothing and counts the datagrams sent to each address. It has no timers,
// so tests in virtual time can use it. Blackhole is safe for concurrent use.
type Blackhole struct {
	closed chan struct{}
	once   sync.Once
	mu     sync.Mutex
	sent   map[netip.AddrPort]int
}

// NewBlackhole returns an open Blackhole.
func NewBlackhole() *Blackhole {
	return &Blackhole{closed: make(chan struct{}), sent: make(map[netip.AddrPort]int)}
}

// Sent returns the number of datagrams sent to each address so far.
func (b *Blackhole) Sent() map[netip.AddrPort]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.sent)
}

// ReadFrom implements net.PacketConn. ReadFrom waits for Close.
func (b *Blackhole) ReadFrom([]byte) (int, net.Addr, error) {
	<-b.closed
	return 0, nil, net.ErrClosed
}

// WriteTo implements net.PacketConn.
func (b *Blackhole) WriteTo(data []byte, to net.Addr) (int, error) {
	select {
	case <-b.closed:
		return 0, net.ErrClosed
	default:
	}
	address := to.(*net.UDPAddr).AddrPort()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent[netip.AddrPortFrom(address.Addr().Unmap(), address.Port())]++
	return len(data), nil
}

// Close implements net.PacketConn.
func (b *Blackhole) Close() error {
	b.once.Do(func() { close(b.closed) })
	return nil
}

// LocalAddr implements net.PacketConn. The address is for documentation (RFC 5737).
func (*Blackhole) LocalAddr() net.Addr {
	return &net.UDPAddr{IP: net.IPv4(198, 51, 100, 1), Port: 7882}
}

// SetDeadline implements net.PacketConn. Deadlines are ignored, as by the two methods below.
func (*Blackhole) SetDeadline(time.Time) error { return nil }

// SetReadDeadline implements net.PacketConn.
func (*Blackhole) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements net.PacketConn.
func (*Blackhole) SetWriteDeadline(time.Time) error { return nil }
