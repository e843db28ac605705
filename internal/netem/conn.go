package netem

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
)

const (
	// DefaultReadBuffer is the size of a Conn's receive buffer, in bytes of payload, before SetReadBuffer: the buffer
	// that Linux grants a socket with the usual net.core.rmem_max of a media server.
	DefaultReadBuffer = 4 << 20

	maxPayload    = 65507   // maximum payload of a UDP datagram over IPv4
	headersIPv4   = 20 + 8  // IP and UDP
	headersIPv6   = 40 + 8  // IP and UDP
	maxReadBuffer = 1 << 30 // a bound on memory
)

// packets recycles packets and their payload buffers, from the reading socket to the writing one.
var packets = sync.Pool{New: func() any { return new(Packet) }}

// recycle returns an unused packet to the pool.
func recycle(p *Packet) {
	*p = Packet{Payload: p.Payload[:0]}
	packets.Put(p)
}

// Conn is a socket of a Network. It is a net.PacketConn that behaves like an unconnected *net.UDPConn, and has the two
// methods with which pion/ice reads and writes without allocation. ReadECN and WriteECN carry codepoints as well.
// Writing never blocks. Errors are of type *net.OpError, as for a UDP socket.
type Conn struct {
	network *Network
	local   netip.AddrPort

	mu            sync.Mutex // guards all fields below
	arrived       sync.Cond  // signalled when a packet arrives, broadcast when a deadline passes or the socket closes
	buffer        fifo[*Packet]
	stats         ConnStats
	limit, bytes  int
	readDeadline  time.Time
	readTimer     *time.Timer // wakes readers at readDeadline
	writeDeadline time.Time
	closed        bool
}

// ConnStats are the counters of a socket.
type ConnStats struct {
	// Received counts packets put into the receive buffer.
	Received, ReceivedBytes uint64
	// DroppedBuffer counts packets dropped because the receive buffer was full.
	DroppedBuffer uint64
}

func newConn(n *Network, local netip.AddrPort) *Conn {
	c := &Conn{network: n, local: local, limit: DefaultReadBuffer}
	c.arrived.L = &c.mu
	return c
}

// LocalAddr returns the local address, a *net.UDPAddr.
func (c *Conn) LocalAddr() net.Addr { return net.UDPAddrFromAddrPort(c.local) }

// ReadFrom waits for a packet and returns its payload and the *net.UDPAddr of its source. Payload beyond the length of
// b is lost, as with a UDP socket.
func (c *Conn) ReadFrom(b []byte) (int, net.Addr, error) {
	n, source, err := c.ReadFromAddrPort(b)
	if err != nil {
		return 0, nil, err
	}
	return n, net.UDPAddrFromAddrPort(source), nil
}

// ReadFromAddrPort is ReadFrom without allocation.
func (c *Conn) ReadFromAddrPort(b []byte) (int, netip.AddrPort, error) {
	n, source, _, err := c.ReadECN(b)
	return n, source, err
}

// ReadECN is ReadFromAddrPort, and also returns the codepoint with which the packet arrived.
func (c *Conn) ReadECN(b []byte) (int, netip.AddrPort, ecn.Codepoint, error) {
	c.mu.Lock()
	for !c.closed && !expired(c.readDeadline) && c.buffer.len() == 0 {
		c.arrived.Wait()
	}
	switch {
	case c.closed:
		c.mu.Unlock()
		return 0, netip.AddrPort{}, ecn.NotECT, c.opError("read", nil, net.ErrClosed)
	case expired(c.readDeadline):
		c.mu.Unlock()
		return 0, netip.AddrPort{}, ecn.NotECT, c.opError("read", nil, os.ErrDeadlineExceeded)
	}
	p := c.buffer.pop()
	c.bytes -= len(p.Payload)
	c.mu.Unlock()
	n, source, codepoint := copy(b, p.Payload), p.Source, p.ECN
	recycle(p)
	return n, source, codepoint, nil
}

// WriteTo sends a packet to a *net.UDPAddr.
func (c *Conn) WriteTo(b []byte, addr net.Addr) (int, error) {
	destination, ok := addr.(*net.UDPAddr)
	if !ok || destination == nil {
		return 0, c.opError("write", addr, fmt.Errorf("%w: %T, expected *net.UDPAddr", ErrAddress, addr))
	}
	return c.WriteToAddrPort(b, destination.AddrPort())
}

// WriteToAddrPort is WriteTo without allocation.
func (c *Conn) WriteToAddrPort(b []byte, destination netip.AddrPort) (int, error) {
	return c.WriteECN(b, destination, ecn.NotECT)
}

// WriteECN is WriteToAddrPort for a packet with a codepoint, which queues of the network may mark.
func (c *Conn) WriteECN(b []byte, destination netip.AddrPort, codepoint ecn.Codepoint) (int, error) {
	if err := c.writable(b, destination); err != nil {
		return 0, c.opError("write", net.UDPAddrFromAddrPort(destination), err)
	}
	p := packets.Get().(*Packet)
	p.Payload = append(p.Payload[:0], b...)
	p.ECN = codepoint
	p.Source = c.local
	p.Destination = netip.AddrPortFrom(destination.Addr().Unmap().WithZone(""), destination.Port())
	p.Size = len(b) + headersIPv4
	if c.local.Addr().Is6() {
		p.Size = len(b) + headersIPv6
	}
	p.Flow = flowOf(p.Source, p.Destination)
	c.network.send(p)
	return len(b), nil
}

// writable returns the error of writing b to destination now, if any.
func (c *Conn) writable(b []byte, destination netip.AddrPort) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch addr := destination.Addr().Unmap(); {
	case c.closed:
		return net.ErrClosed
	case expired(c.writeDeadline):
		return os.ErrDeadlineExceeded
	case !addr.IsValid() || addr.Is4() != c.local.Addr().Is4() || destination.Port() == 0:
		return fmt.Errorf("%w: expected an address and a port of the family of %s", ErrAddress, c.local.Addr())
	case len(b) > maxPayload:
		return syscall.EMSGSIZE
	}
	return nil
}

// flowOf returns a flow number for two addresses.
func flowOf(source, destination netip.AddrPort) uint64 {
	ports := uint64(source.Port())<<16 | uint64(destination.Port())
	return mixAddr(mixAddr(ports, source.Addr()), destination.Addr())
}

// SetReadBuffer sets the size of the receive buffer in bytes of payload. The kernel also counts its own overhead, about
// 1,100 bytes per packet of 1,200; this buffer does not.
func (c *Conn) SetReadBuffer(bytes int) error {
	if bytes < 1 || bytes > maxReadBuffer {
		return c.opError("set", nil, fmt.Errorf("read buffer of %d bytes, expected 1 to %d: %w", bytes, maxReadBuffer,
			syscall.EINVAL))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit = bytes
	return nil
}

// SetDeadline sets both deadlines.
func (c *Conn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// SetReadDeadline makes reads, including waiting ones, fail with os.ErrDeadlineExceeded from t on. The zero time
// removes the deadline.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.opError("set", nil, net.ErrClosed)
	}
	c.readDeadline = t
	if c.readTimer != nil {
		c.readTimer.Stop()
	}
	switch {
	case t.IsZero():
	case expired(t):
		c.arrived.Broadcast()
	default:
		c.readTimer = time.AfterFunc(time.Until(t), func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.arrived.Broadcast()
		})
	}
	return nil
}

// SetWriteDeadline makes writes fail with os.ErrDeadlineExceeded from t on. The zero time removes the deadline.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.opError("set", nil, net.ErrClosed)
	}
	c.writeDeadline = t
	return nil
}

// Close releases the address, drops unread packets and wakes readers with net.ErrClosed. A second call returns
// net.ErrClosed.
func (c *Conn) Close() error {
	if !c.shut() {
		return c.opError("close", nil, net.ErrClosed)
	}
	c.network.forget(c)
	return nil
}

// shut ends reading and writing. It returns false if the socket was closed before.
func (c *Conn) shut() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.closed = true
	c.buffer, c.bytes = fifo[*Packet]{}, 0
	if c.readTimer != nil {
		c.readTimer.Stop()
	}
	c.arrived.Broadcast()
	return true
}

// Stats returns the counters.
func (c *Conn) Stats() ConnStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// receive puts a packet into the buffer, or drops it if the buffer is full.
func (c *Conn) receive(p *Packet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.bytes+len(p.Payload) > c.limit {
		c.stats.DroppedBuffer++
		recycle(p)
		return
	}
	c.bytes += len(p.Payload)
	c.stats.Received++
	c.stats.ReceivedBytes += uint64(len(p.Payload))
	c.buffer.push(p)
	c.arrived.Signal()
}

func (c *Conn) opError(op string, remote net.Addr, err error) error {
	return &net.OpError{Op: op, Net: "udp", Source: c.LocalAddr(), Addr: remote, Err: err}
}

// expired reports whether a deadline is set and has passed.
func expired(deadline time.Time) bool {
	return !deadline.IsZero() && !time.Now().Before(deadline)
}
