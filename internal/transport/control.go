package transport

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/volsfu/volsfu/internal/udp"
)

// controlBacklog is how many datagrams wait for ICE to read them. A join costs some twenty; a hundred joins at once fit.
const controlBacklog = 2048

// controlConn is the media port as ICE sees it: what is not media of a known peer, from all sockets, in order of arrival. It implements
// net.PacketConn and ice.AddrPortReaderWriter.
type controlConn struct {
	port   *udp.Port
	queue  chan controlDatagram
	closed chan struct{}
	once   sync.Once
}

// controlDatagram is a copy of a datagram and where it came from.
type controlDatagram struct {
	data []byte
	from netip.AddrPort
}

func newControlConn(port *udp.Port) *controlConn {
	return &controlConn{port: port, queue: make(chan controlDatagram, controlBacklog), closed: make(chan struct{})}
}

// deliver hands the datagrams of a message to ICE. What finds the queue full is lost, as it might be on the network.
func (c *controlConn) deliver(message udp.Message) {
	for datagram := range message.Datagrams() {
		c.deliverOne(datagram, message.Peer)
	}
}

// deliverOne keeps no datagram that the reader of ICE's connection would have no room for.
func (c *controlConn) deliverOne(datagram []byte, from netip.AddrPort) {
	if len(datagram) > receiveBytes {
		return
	}
	select {
	case c.queue <- controlDatagram{append([]byte(nil), datagram...), from}:
	default:
	}
}

// ReadFromAddrPort implements ice.AddrPortReaderWriter.
func (c *controlConn) ReadFromAddrPort(b []byte) (int, netip.AddrPort, error) {
	select {
	case d := <-c.queue:
		return copy(b, d.data), d.from, nil
	case <-c.closed:
		return 0, netip.AddrPort{}, net.ErrClosed
	}
}

// ReadFrom implements net.PacketConn.
func (c *controlConn) ReadFrom(b []byte) (int, net.Addr, error) {
	n, from, err := c.ReadFromAddrPort(b)
	if err != nil {
		return 0, nil, err
	}
	return n, net.UDPAddrFromAddrPort(from), nil
}

// WriteToAddrPort implements ice.AddrPortReaderWriter. Whichever socket of the port sends, the remote peer sees the same address.
func (c *controlConn) WriteToAddrPort(b []byte, to netip.AddrPort) (int, error) {
	message := udp.Message{Peer: to, Data: b, Segment: len(b)}
	if err := c.port.Sockets()[0].Send([]udp.Message{message}); err != nil {
		return 0, err
	}
	return len(b), nil
}

// WriteTo implements net.PacketConn.
func (c *controlConn) WriteTo(b []byte, to net.Addr) (int, error) {
	address, ok := to.(*net.UDPAddr)
	if !ok {
		return 0, net.InvalidAddrError("expected a UDP address, not " + to.String())
	}
	return c.WriteToAddrPort(b, address.AddrPort())
}

// LocalAddr implements net.PacketConn.
func (c *controlConn) LocalAddr() net.Addr { return net.UDPAddrFromAddrPort(c.port.Address()) }

// Close implements net.PacketConn. The sockets are the endpoint's to close.
func (c *controlConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

// SetDeadline implements net.PacketConn, as do the others. Writing never waits long, and who reads waits until the end.
func (c *controlConn) SetDeadline(time.Time) error      { return nil }
func (c *controlConn) SetReadDeadline(time.Time) error  { return nil }
func (c *controlConn) SetWriteDeadline(time.Time) error { return nil }
