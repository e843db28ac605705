package udp

import (
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
)

// packetConn has calls without allocation. Connections of emulated networks have these methods; those of package net
// are adapted.
type packetConn interface {
	ReadFromAddrPort(b []byte) (int, netip.AddrPort, error)
	WriteToAddrPort(b []byte, peer netip.AddrPort) (int, error)
	LocalAddr() net.Addr
	SetWriteDeadline(t time.Time) error
	Close() error
}

// ecnConn is a connection that carries the ECN codepoint of each datagram, as those of emulated networks do.
type ecnConn interface {
	ReadECN(b []byte) (int, netip.AddrPort, ecn.Codepoint, error)
	WriteECN(b []byte, peer netip.AddrPort, codepoint ecn.Codepoint) (int, error)
}

// adapt returns the cheapest calls that a connection has.
func adapt(conn net.PacketConn) packetConn {
	switch conn := conn.(type) {
	case *net.UDPConn:
		return udpConn{conn}
	case packetConn:
		return conn
	default:
		return anyConn{conn}
	}
}

// udpConn is a socket of package net.
type udpConn struct{ *net.UDPConn }

func (c udpConn) ReadFromAddrPort(b []byte) (int, netip.AddrPort, error) {
	return c.ReadFromUDPAddrPort(b)
}

func (c udpConn) WriteToAddrPort(b []byte, peer netip.AddrPort) (int, error) {
	return c.WriteToUDPAddrPort(b, peer)
}

// anyConn is a connection that uses net.Addr only.
type anyConn struct{ net.PacketConn }

func (c anyConn) ReadFromAddrPort(b []byte) (int, netip.AddrPort, error) {
	n, from, err := c.ReadFrom(b)
	if err != nil {
		return 0, netip.AddrPort{}, err
	}
	peer, err := addrPort(from)
	return n, peer, err
}

func (c anyConn) WriteToAddrPort(b []byte, peer netip.AddrPort) (int, error) {
	return c.WriteTo(b, net.UDPAddrFromAddrPort(peer))
}

// addrPort converts an address. The error wraps ErrAddress if it is not a UDP address.
func addrPort(address net.Addr) (netip.AddrPort, error) {
	if address, ok := address.(*net.UDPAddr); ok && address != nil {
		if known := address.AddrPort(); known.IsValid() {
			return unmap(known), nil
		}
	}
	return netip.AddrPort{}, fmt.Errorf("%v: %w", address, ErrAddress)
}
