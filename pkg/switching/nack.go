package switching

import (
	"encoding/binary"

	"github.com/pion/rtcp"
)

// Layout of RTCP (RFC 3550 section 6.4) and of the generic NACK (RFC 4585 section 6.2.1), in bytes.
const (
	rtcpHeader    = 4
	nackMediaSSRC = 8
	nackPairs     = 12
	nackPair      = 4
)

// answer resends the packets requested by the NACKs in a compound packet, for streams of this interceptor that have
// RTX. answer removes these NACKs in place and returns the number of remaining bytes. Data after a malformed packet is
// not changed.
func (i *swapper) answer(compound []byte) int {
	left := 0
	for rest := compound; len(rest) > 0; {
		size := rtcpSize(rest)
		if size == 0 {
			return left + copy(compound[left:], rest)
		}
		packet := rest[:size]
		rest = rest[size:]
		if s := i.nacked(packet); s != nil {
			for pairs := packet[nackPairs:]; len(pairs) >= nackPair; pairs = pairs[nackPair:] {
				s.answer(binary.BigEndian.Uint16(pairs), binary.BigEndian.Uint16(pairs[2:]))
			}
			continue
		}
		left += copy(compound[left:], packet)
	}
	return left
}

// rtcpSize returns the size of the first packet of a compound packet in bytes, or 0 if the packet
// is malformed.
func rtcpSize(b []byte) int {
	const version = 2
	if len(b) < rtcpHeader || b[0]>>6 != version {
		return 0
	}
	size := rtcpHeader * (int(binary.BigEndian.Uint16(b[2:])) + 1)
	if size > len(b) {
		return 0
	}
	return size
}

// nacked returns the stream to which a NACK refers. nacked returns nil if the packet is not a NACK or is not answered
// here.
func (i *swapper) nacked(packet []byte) *stream {
	const formatMask = 0x1f
	if rtcp.PacketType(packet[1]) != rtcp.TypeTransportSpecificFeedback || packet[0]&formatMask != rtcp.FormatTLN ||
		len(packet) < nackPairs {
		return nil
	}
	if s := i.stream(binary.BigEndian.Uint32(packet[nackMediaSSRC:])); s != nil && s.rtxSSRC != 0 {
		return s
	}
	return nil
}

// answer resends the packet with the given number and the following packets whose bits are set,
// with the lowest bit for the next number. If a packet cannot be written, the receiver will request
// it again.
func (s *stream) answer(number, bits uint16) {
	for bits := uint32(bits)<<1 | 1; bits != 0; bits >>= 1 {
		if bits&1 != 0 && s.resend(number) != nil {
			return
		}
		number++
	}
}
