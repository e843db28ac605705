package bpf

import (
	"encoding/binary"
	"net/netip"

	"github.com/volsfu/volsfu/internal/netfn/wire"
)

const (
	etherSize = 14
	protoTCP  = 6
	protoUDP  = 17
	testPort  = 4755
)

// Addresses of the tests: an inner and an outer pair of each family, from the sender to the receiver.
var (
	innerFrom4, innerTo4 = netip.MustParseAddr("10.1.0.1"), netip.MustParseAddr("10.2.0.2")
	innerFrom6, innerTo6 = netip.MustParseAddr("fd00:1::1"), netip.MustParseAddr("fd00:2::2")
	outerFrom4, outerTo4 = netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("198.51.100.1")
	outerFrom6, outerTo6 = netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2")
)

// packet describes an IP packet.
type packet struct {
	from, to     netip.Addr
	protocol     uint8
	tos          uint8
	id, fragment uint16 // of IPv4
	sequence     uint32 // of TCP
	ports        [2]uint16
	payload      int
	options      int // words of IPv4 options
}

// bytes returns the packet. The payload counts up.
func (p packet) bytes() []byte {
	var transport []byte
	switch p.protocol {
	case protoTCP:
		transport = make([]byte, 20)
		binary.BigEndian.PutUint32(transport[4:], p.sequence)
		transport[12] = 5 << 4
	case protoUDP:
		transport = make([]byte, 8)
		binary.BigEndian.PutUint16(transport[4:], uint16(8+p.payload))
	}
	if len(transport) > 0 {
		binary.BigEndian.PutUint16(transport[0:], p.ports[0])
		binary.BigEndian.PutUint16(transport[2:], p.ports[1])
	}
	for i := range p.payload {
		transport = append(transport, byte(i))
	}
	return append(p.header(len(transport)), transport...)
}

// header returns the IP header in front of a number of bytes.
func (p packet) header(behind int) []byte {
	if p.from.Is6() {
		b := make([]byte, 40, 40+behind)
		b[0], b[1] = 6<<4|p.tos>>4, p.tos<<4
		binary.BigEndian.PutUint16(b[4:], uint16(behind))
		b[6], b[7] = p.protocol, 64
		copy(b[8:], p.from.AsSlice())
		copy(b[24:], p.to.AsSlice())
		return b
	}
	size := 20 + 4*p.options
	b := make([]byte, size, size+behind)
	b[0], b[1] = 0x40|byte(size/4), p.tos
	binary.BigEndian.PutUint16(b[2:], uint16(size+behind))
	binary.BigEndian.PutUint16(b[4:], p.id)
	binary.BigEndian.PutUint16(b[6:], p.fragment)
	b[8], b[9] = 64, p.protocol
	copy(b[12:], p.from.AsSlice())
	copy(b[16:], p.to.AsSlice())
	for i := range p.options * 4 {
		b[20+i] = 1 // no operation
	}
	binary.BigEndian.PutUint16(b[10:], checksum(b))
	return b
}

// checksum returns the internet checksum (RFC 1071) of bytes, an even number.
func checksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}

// encapsulate returns the copy of an IP packet as the sender makes it.
func encapsulate(from, to netip.Addr, tos uint8, h wire.Header, inner []byte) []byte {
	udp := binary.BigEndian.AppendUint16(nil, 49152+uint16(h.Flow))
	udp = binary.BigEndian.AppendUint16(udp, testPort)
	udp = binary.BigEndian.AppendUint16(udp, uint16(8+wire.HeaderSize+len(inner)))
	udp = append(udp, 0, 0)
	udp = append(h.Append(udp), inner...)
	p := packet{from: from, to: to, protocol: protoUDP, tos: tos, fragment: 0x4000}
	return append(p.header(len(udp)), udp...)
}

// frame puts an Ethernet header in front of an IP packet. The destination is the address of the loopback interface, at
// which test runs take place.
func frame(ip []byte) []byte {
	b := []byte{0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 2, 8, 0}
	if ip[0]>>4 == 6 {
		b[12], b[13] = 0x86, 0xdd
	}
	return append(b, ip...)
}
