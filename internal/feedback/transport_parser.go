package feedback

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// errTransportFeedback is the sentinel of malformed packets. The wrapping error has the reason.
var errTransportFeedback = errors.New("malformed transport-wide feedback")

// transportStatuses is a parsed report. chunks and deltas refer to the packet, and have been checked against each
// other.
type transportStatuses struct {
	transportReport
	chunks []byte
	deltas []byte
}

// IsTransportFeedback reports whether the header of an RTCP packet is that of transport-wide feedback
// (draft-holmer-rmcat-transport-wide-cc-extensions-01 section 3.1).
func IsTransportFeedback(packet []byte) bool {
	return len(packet) >= 4 && packet[0]&0xdf == 0x80|transportFormat && packet[1] == transportType
}

// parseTransportFeedback parses a report. Its cost is proportional to the packet's size, not to the count in the
// packet.
func parseTransportFeedback(packet []byte) (transportStatuses, error) {
	if len(packet) < transportHeader || !IsTransportFeedback(packet) {
		return transportStatuses{}, fmt.Errorf("%w: %d bytes, or of another type", errTransportFeedback, len(packet))
	}
	size := 4 * (int(binary.BigEndian.Uint16(packet[2:])) + 1)
	if size < transportHeader || size > len(packet) {
		return transportStatuses{}, fmt.Errorf("%w: a length of %d in %d bytes", errTransportFeedback, size,
			len(packet))
	}
	packet = packet[:size]
	if packet[0]&0x20 != 0 {
		padding := int(packet[size-1])
		if padding == 0 || padding > size-transportHeader {
			return transportStatuses{}, fmt.Errorf("%w: padding of %d bytes", errTransportFeedback, padding)
		}
		packet = packet[:size-padding]
	}
	word := binary.BigEndian.Uint32(packet[16:])
	s := transportStatuses{transportReport: transportReport{
		sender:    binary.BigEndian.Uint32(packet[4:]),
		media:     binary.BigEndian.Uint32(packet[8:]),
		base:      binary.BigEndian.Uint16(packet[12:]),
		count:     binary.BigEndian.Uint16(packet[14:]),
		reference: word >> 8,
		feedback:  uint8(word),
	}}
	rest, deltas := packet[transportHeader:], 0
	at := 0
	for left := int(s.count); left > 0; at += 2 {
		if len(rest) < at+2 {
			return transportStatuses{}, fmt.Errorf("%w: no status of %d numbers", errTransportFeedback, left)
		}
		chunk := readChunk(binary.BigEndian.Uint16(rest[at:]), left)
		if chunk.reserved() {
			return transportStatuses{}, fmt.Errorf("%w: reserved symbol", errTransportFeedback)
		}
		deltas += chunk.deltaBytes()
		left -= chunk.count
	}
	if len(rest) < at+deltas {
		return transportStatuses{}, fmt.Errorf("%w: %d bytes of arrival times, expected %d", errTransportFeedback,
			len(rest)-at, deltas)
	}
	s.chunks, s.deltas = rest[:at], rest[at:at+deltas]
	return s, nil
}

// statusChunk is a chunk: a run of one symbol, or a vector of at most 14, two bits each whatever their size in the
// packet was. The first symbol is in the highest bits.
type statusChunk struct {
	run    bool
	symbol uint32
	vector uint32
	count  int
}

// readChunk parses a chunk of which at most left symbols count.
func readChunk(chunk uint16, left int) statusChunk {
	switch {
	case chunk&0x8000 == 0:
		return statusChunk{run: true, symbol: uint32(chunk >> 13), count: min(int(chunk&maxRunLength), left)}
	case chunk&0x4000 == 0:
		count := min(oneBitSymbols, left)
		return statusChunk{vector: spread(uint32(chunk&0x3fff)) >> (2 * (oneBitSymbols - count)), count: count}
	default:
		count := min(twoBitSymbols, left)
		return statusChunk{vector: uint32(chunk&0x3fff) >> (2 * (twoBitSymbols - count)), count: count}
	}
}

// spread inserts a zero above each of 16 bits.
func spread(v uint32) uint32 {
	v = (v | v<<8) & 0x00ff00ff
	v = (v | v<<4) & 0x0f0f0f0f
	v = (v | v<<2) & 0x33333333
	return (v | v<<1) & 0x55555555
}

// at returns the symbol at an index below count.
func (c statusChunk) at(index int) uint32 {
	if c.run {
		return c.symbol
	}
	return c.vector >> (2 * (c.count - 1 - index)) & 3
}

func (c statusChunk) reserved() bool {
	if c.run {
		return c.symbol == 3
	}
	return c.vector&(c.vector>>1)&0x55555555 != 0
}

// deltaBytes returns the size of the chunk's deltas.
func (c statusChunk) deltaBytes() int {
	if c.run {
		return c.count * int(c.symbol)
	}
	return bits.OnesCount32(c.vector&0x55555555) + 2*bits.OnesCount32(c.vector&0xaaaaaaaa)
}
