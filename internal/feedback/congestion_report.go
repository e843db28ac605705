package feedback

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
)

// ErrCongestionReport is the sentinel of malformed congestion control feedback packets, and of reports that cannot be
// encoded. The wrapping error has the reason.
var ErrCongestionReport = errors.New("malformed congestion control feedback")

// CongestionReport is an RTCP congestion control feedback packet (RFC 8888 section 3.1): the received packets of
// several RTP streams, with arrival times and ECN bits.
type CongestionReport struct {
	// Sender is the SSRC of the reporter.
	Sender  uint32
	Streams []StreamReport
	// Timestamp is the time of the report by the reporter's clock: the middle 32 bits of an NTP timestamp, in 1/65,536
	// s.
	Timestamp uint32

	arrivals []PacketArrival // memory of all Streams
}

// StreamReport is the part of a report for one RTP stream.
type StreamReport struct {
	SSRC uint32
	// Begin is the sequence number of the first of Packets; the numbers of the others follow.
	Begin   uint16
	Packets []PacketArrival
}

// PacketArrival is the part of a report for one packet. Offset and ECN have no meaning if the packet was not received.
type PacketArrival struct {
	Received bool
	ECN      ecn.Codepoint
	// Offset is the time from the arrival to the report, in 1/1024 s, or one of the values below.
	Offset uint16
}

const (
	// OffsetOverRange is an offset of more than 8,189/1024 s.
	OffsetOverRange = 0x1ffe
	// OffsetUnknown is an unknown offset, or an arrival after the time of the report.
	OffsetUnknown = 0x1fff
)

const (
	congestionFormat    = 11
	congestionHeader    = 8 // with the sender
	congestionStream    = 8 // SSRC, first number and count
	congestionTimestamp = 4
	// maxStreamPackets is the limit of RFC 8888 for one stream in a report.
	maxStreamPackets = 1 << 14
)

// ArrivalOffset returns the Offset of a packet that arrived the given time before the report.
func ArrivalOffset(before time.Duration) uint16 {
	switch offset := (before*1024 + time.Second/2) / time.Second; {
	case before < 0:
		return OffsetUnknown
	case before > 10*time.Second || offset > OffsetOverRange-1:
		return OffsetOverRange
	default:
		return uint16(offset)
	}
}

// IsCongestionReport reports whether the header of an RTCP packet is that of congestion control feedback.
func IsCongestionReport(packet []byte) bool {
	return len(packet) >= 4 && packet[0]&0xdf == 0x80|congestionFormat && packet[1] == transportType
}

// Append appends the packet, with its RTCP header. The error wraps ErrCongestionReport if a stream has more than 16,384
// packets, or the packet more than 65,536 words.
func (r *CongestionReport) Append(dst []byte) ([]byte, error) {
	begin := len(dst)
	dst = append(dst, 0x80|congestionFormat, transportType, 0, 0)
	dst = binary.BigEndian.AppendUint32(dst, r.Sender)
	for i := range r.Streams {
		s := &r.Streams[i]
		if len(s.Packets) > maxStreamPackets {
			return dst[:begin], fmt.Errorf("%w: %d packets of SSRC %d, expected at most %d", ErrCongestionReport,
				len(s.Packets), s.SSRC, maxStreamPackets)
		}
		dst = binary.BigEndian.AppendUint32(dst, s.SSRC)
		dst = binary.BigEndian.AppendUint16(dst, s.Begin)
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(s.Packets)))
		for _, p := range s.Packets {
			dst = binary.BigEndian.AppendUint16(dst, p.block())
		}
		if len(s.Packets)%2 != 0 {
			dst = append(dst, 0, 0)
		}
	}
	dst = binary.BigEndian.AppendUint32(dst, r.Timestamp)
	words := (len(dst)-begin)/4 - 1
	if words > 1<<16-1 {
		return dst[:begin], fmt.Errorf("%w: %d words, expected at most %d", ErrCongestionReport, words, 1<<16-1)
	}
	binary.BigEndian.PutUint16(dst[begin+2:], uint16(words))
	return dst, nil
}

// block returns a packet metric block: a received bit, two bits of ECN, and the offset.
func (p PacketArrival) block() uint16 {
	if !p.Received {
		return 0
	}
	return 1<<15 | uint16(p.ECN&3)<<13 | p.Offset&OffsetUnknown
}

// Unmarshal parses a packet with its RTCP header. It reuses the memory of the report and keeps no reference to packet.
// Errors wrap ErrCongestionReport.
func (r *CongestionReport) Unmarshal(packet []byte) error {
	body, err := congestionBody(packet)
	if err != nil {
		return err
	}
	r.Sender = binary.BigEndian.Uint32(body[4:])
	r.Timestamp = binary.BigEndian.Uint32(body[len(body)-congestionTimestamp:])
	rest := body[congestionHeader : len(body)-congestionTimestamp]
	if most := len(rest) / 2; cap(r.arrivals) < most {
		r.arrivals = make([]PacketArrival, 0, most)
	}
	r.Streams, r.arrivals = r.Streams[:0], r.arrivals[:0]
	for len(rest) > 0 {
		if len(rest) < congestionStream {
			return fmt.Errorf("%w: %d bytes for a stream, expected at least %d", ErrCongestionReport, len(rest),
				congestionStream)
		}
		s := StreamReport{SSRC: binary.BigEndian.Uint32(rest), Begin: binary.BigEndian.Uint16(rest[4:])}
		count := int(binary.BigEndian.Uint16(rest[6:]))
		rest = rest[congestionStream:]
		size := (count + count%2) * 2
		if count > maxStreamPackets || size > len(rest) {
			return fmt.Errorf("%w: %d packets of SSRC %d in %d bytes", ErrCongestionReport, count, s.SSRC, len(rest))
		}
		first := len(r.arrivals)
		for i := range count {
			block := binary.BigEndian.Uint16(rest[2*i:])
			p := PacketArrival{Received: block>>15 != 0}
			if p.Received {
				p.ECN, p.Offset = ecn.Codepoint(block>>13&3), block&OffsetUnknown
			}
			r.arrivals = append(r.arrivals, p)
		}
		s.Packets = r.arrivals[first:len(r.arrivals):len(r.arrivals)]
		r.Streams = append(r.Streams, s)
		rest = rest[size:]
	}
	return nil
}

// congestionBody returns the packet up to the length in its header, without padding.
func congestionBody(packet []byte) ([]byte, error) {
	const least = congestionHeader + congestionTimestamp
	if !IsCongestionReport(packet) {
		return nil, fmt.Errorf("%w: %d bytes, or of another type", ErrCongestionReport, len(packet))
	}
	size := 4 * (int(binary.BigEndian.Uint16(packet[2:])) + 1)
	if size < least || size > len(packet) {
		return nil, fmt.Errorf("%w: a length of %d in %d bytes, expected at least %d", ErrCongestionReport, size,
			len(packet), least)
	}
	if packet[0]&0x20 == 0 {
		return packet[:size], nil
	}
	padding := int(packet[size-1])
	if padding == 0 || padding > size-least {
		return nil, fmt.Errorf("%w: padding of %d bytes", ErrCongestionReport, padding)
	}
	return packet[:size-padding], nil
}
