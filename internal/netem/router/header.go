package router

import (
	"encoding/binary"

	"github.com/volsfu/volsfu/internal/ecn"
)

const (
	headerBytes  = 20 // of IPv4 without options
	header6Bytes = 40 // of IPv6 without extensions

	protocolTCP = 6
	protocolUDP = 17
)

// address is an IPv6 address, or an IPv4 address mapped to IPv6 (netip.Addr.As16).
type address [16]byte

// mapped returns an IPv4 address mapped to IPv6.
func mapped(ipv4 []byte) (a address) {
	a[10], a[11] = 0xff, 0xff
	copy(a[12:], ipv4)
	return a
}

// pair is the source and the destination of a packet.
type pair struct{ source, destination address }

// header has the fields of an IP packet that the router uses.
type header struct {
	pair
	ecn  ecn.Codepoint
	flow uint64
}

// parse parses the header of a packet. It returns false if the packet is neither IPv4 nor IPv6, or is truncated.
func parse(packet []byte) (header, bool) {
	if len(packet) == 0 {
		return header{}, false
	}
	switch packet[0] >> 4 {
	case 4:
		return parse4(packet)
	case 6:
		return parse6(packet)
	}
	return header{}, false
}

func parse4(packet []byte) (header, bool) {
	if len(packet) < headerBytes {
		return header{}, false
	}
	length := int(packet[0]&0x0f) * 4
	if total := int(binary.BigEndian.Uint16(packet[2:])); length < headerBytes || total < length ||
		total > len(packet) {
		return header{}, false
	}
	h := header{pair: pair{mapped(packet[12:16]), mapped(packet[16:20])}, ecn: codepoint(packet)}
	protocol := packet[9]
	ports := uint64(0)
	// Ports are in the first fragment only; all fragments form a flow of their own.
	if fragment := binary.BigEndian.Uint16(packet[6:]) & 0x3fff; fragment == 0 {
		ports = portsOf(packet[length:], protocol)
	}
	h.flow = spread(spread(binary.BigEndian.Uint64(packet[12:])) ^ ports<<8 ^ uint64(protocol))
	return h, true
}

// parse6 parses IPv6. Packets with extension headers, such as fragments, form a flow of their own.
func parse6(packet []byte) (header, bool) {
	if len(packet) < header6Bytes || int(binary.BigEndian.Uint16(packet[4:])) > len(packet)-header6Bytes {
		return header{}, false
	}
	h := header{pair: pair{address(packet[8:24]), address(packet[24:40])}, ecn: codepoint(packet)}
	protocol := packet[6]
	h.flow = portsOf(packet[header6Bytes:], protocol)<<8 ^ uint64(protocol)
	for at := 8; at < header6Bytes; at += 8 {
		h.flow = spread(h.flow ^ binary.BigEndian.Uint64(packet[at:]))
	}
	return h, true
}

// portsOf returns both ports of a payload of TCP or UDP, 0 of another.
func portsOf(payload []byte, protocol byte) uint64 {
	if (protocol == protocolTCP || protocol == protocolUDP) && len(payload) >= 4 {
		return uint64(binary.BigEndian.Uint32(payload))
	}
	return 0
}

// spread spreads every bit of x over all bits: the output function of SplitMix64.
func spread(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// codepoint returns the codepoint of a parsed packet: the last two bits of the type of service of IPv4, or of the
// traffic class of IPv6, which begins in the middle of the first byte (RFC 8200, section 3).
func codepoint(packet []byte) ecn.Codepoint {
	if packet[0]>>4 == 6 {
		return ecn.Codepoint(packet[1] >> 4 & 3)
	}
	return ecn.Codepoint(packet[1] & 3)
}

// setECN changes the codepoint of a parsed packet. The header checksum of IPv4 is updated (RFC 1624, equation 3); IPv6
// has none, and the pseudo header of TCP and UDP does not contain the traffic class.
func setECN(packet []byte, codepoint ecn.Codepoint) {
	if packet[0]>>4 == 6 {
		packet[1] = packet[1]&^(3<<4) | byte(codepoint)<<4
		return
	}
	before := binary.BigEndian.Uint16(packet)
	packet[1] = packet[1]&^3 | byte(codepoint)
	after := binary.BigEndian.Uint16(packet)
	sum := uint32(^binary.BigEndian.Uint16(packet[10:])) + uint32(^before) + uint32(after)
	sum = sum&0xffff + sum>>16
	sum = sum&0xffff + sum>>16
	binary.BigEndian.PutUint16(packet[10:], ^uint16(sum))
}
