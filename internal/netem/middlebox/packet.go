package middlebox

import (
	"encoding/binary"
	"net/netip"
)

const (
	protocolTCP = 6
	protocolUDP = 17

	header4Bytes = 20 // of IPv4 without options
	header6Bytes = 40 // of IPv6 without extensions

	// Offsets of the checksums in the headers of TCP and UDP.
	checksumTCP = 16
	checksumUDP = 6
)

// datagram is an IP packet with an unfragmented header of TCP or UDP.
type datagram struct {
	packet   []byte
	protocol byte
	// transport is the offset of the header of TCP or UDP.
	transport int
	is4       bool
}

// parse returns the parts of a packet. ok is false for other protocols, fragments and truncated packets.
func parse(packet []byte) (d datagram, ok bool) {
	d.packet = packet
	switch {
	case len(packet) >= header4Bytes && packet[0]>>4 == 4:
		d.is4, d.transport, d.protocol = true, int(packet[0]&15)*4, packet[9]
		if d.transport < header4Bytes || binary.BigEndian.Uint16(packet[6:])&0x3fff != 0 {
			return d, false
		}
	case len(packet) >= header6Bytes && packet[0]>>4 == 6:
		d.transport, d.protocol = header6Bytes, packet[6]
	default:
		return d, false
	}
	least := checksumUDP + 2
	if d.protocol == protocolTCP {
		least = checksumTCP + 2
	}
	return d, (d.protocol == protocolTCP || d.protocol == protocolUDP) && len(packet) >= d.transport+least
}

// end is the source or the destination of a datagram.
type end int

const (
	source end = iota
	destination
)

// address returns one end.
func (d datagram) address(e end) netip.AddrPort {
	at, size := 12, 4
	if !d.is4 {
		at, size = 8, 16
	}
	at += int(e) * size
	ip, _ := netip.AddrFromSlice(d.packet[at : at+size])
	return netip.AddrPortFrom(ip, binary.BigEndian.Uint16(d.packet[d.transport+2*int(e):]))
}

// rewrite changes one end of a datagram of IPv4, and the checksums.
func (d datagram) rewrite(e end, to netip.AddrPort) {
	var before, after [6]byte
	ip := d.packet[12+4*int(e):][:4]
	port := d.packet[d.transport+2*int(e):][:2]
	copy(before[:], ip)
	copy(before[4:], port)
	address := to.Addr().As4()
	copy(after[:], address[:])
	binary.BigEndian.PutUint16(after[4:], to.Port())
	copy(ip, after[:4])
	copy(port, after[4:])
	update(d.packet[10:], before[:4], after[:4])
	checksum := d.packet[d.transport+checksumUDP:]
	if d.protocol == protocolTCP {
		checksum = d.packet[d.transport+checksumTCP:]
	} else if checksum[0] == 0 && checksum[1] == 0 {
		// The sender of UDP has not computed one.
		return
	}
	// The pseudo header contains the addresses.
	update(checksum, before[:], after[:])
}

// update changes a checksum for changed 16-bit words (RFC 1624, equation 3).
func update(checksum, before, after []byte) {
	sum := uint32(^binary.BigEndian.Uint16(checksum))
	for i := 0; i < len(before); i += 2 {
		sum += uint32(^binary.BigEndian.Uint16(before[i:])) + uint32(binary.BigEndian.Uint16(after[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	binary.BigEndian.PutUint16(checksum, ^uint16(sum))
}
