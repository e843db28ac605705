package router

import (
	"encoding/binary"

	"github.com/volsfu/volsfu/internal/ecn"
)

const (
	headerBytes = 20 // of IPv4 without options

	protocolTCP = 6
	protocolUDP = 17
)

// header has the fields of an IPv4 packet that the router uses.
type header struct {
	source, destination uint32
	ecn                 ecn.Codepoint
	flow                uint64
}

// parse parses the header of a packet. It returns false if the packet is not IPv4 or is truncated.
func parse(packet []byte) (header, bool) {
	if len(packet) < headerBytes || packet[0]>>4 != 4 {
		return header{}, false
	}
	length := int(packet[0]&0x0f) * 4
	if total := int(binary.BigEndian.Uint16(packet[2:])); length < headerBytes || total < length ||
		total > len(packet) {
		return header{}, false
	}
	h := header{
		source:      binary.BigEndian.Uint32(packet[12:]),
		destination: binary.BigEndian.Uint32(packet[16:]),
		ecn:         ecn.Codepoint(packet[1] & 3),
	}
	protocol := packet[9]
	ports := uint64(0)
	// Ports are in the first fragment only; all fragments form a flow of their own.
	if fragment := binary.BigEndian.Uint16(packet[6:]) & 0x3fff; fragment == 0 &&
		(protocol == protocolTCP || protocol == protocolUDP) && len(packet) >= length+4 {
		ports = uint64(binary.BigEndian.Uint32(packet[length:]))
	}
	h.flow = spread(spread(uint64(h.source)<<32|uint64(h.destination)) ^ ports<<8 ^ uint64(protocol))
	return h, true
}

// spread spreads every bit of x over all bits: the output function of SplitMix64.
func spread(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// setECN changes the codepoint of a parsed packet, and updates its header checksum (RFC 1624, equation 3).
func setECN(packet []byte, codepoint ecn.Codepoint) {
	before := binary.BigEndian.Uint16(packet)
	packet[1] = packet[1]&^3 | byte(codepoint)
	after := binary.BigEndian.Uint16(packet)
	sum := uint32(^binary.BigEndian.Uint16(packet[10:])) + uint32(^before) + uint32(after)
	sum = sum&0xffff + sum>>16
	sum = sum&0xffff + sum>>16
	binary.BigEndian.PutUint16(packet[10:], ^uint16(sum))
}
