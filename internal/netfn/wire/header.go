package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The data header follows the outer IP and UDP headers, and the inner IP packet follows the data header. Integers are
// big-endian. The inner protocol is the version in the inner IP header.
//
//	 0   version (high 4 bits), kind (low 4 bits)
//	 1   path of the copy
//	 2   set: mask of the paths on which copies of the packet leave, probes included
//	 3   flow: rule (high 4 bits), hash of addresses, protocol and ports (low 4 bits)
//	 4   end (2 bytes): of KindSequence only, otherwise 0
//	 6   epoch (2 bytes)
//	 8   base number (4 bytes)
//	12   send time in µs modulo 2^32 (4 bytes), equal in all copies
//
// The number of a packet identifies the packet within its flow and epoch. A super-packet, which the network stack or
// the network card cuts into segments, takes one number per segment. All its segments have the same data header, so the
// number of a segment also depends on the inner packet: see Number.
const (
	// HeaderVersion is the version of data headers and control messages.
	HeaderVersion = 1
	// HeaderSize is the size of a data header in bytes.
	HeaderSize = 16
	// MaxPaths is the number of paths that a pair can have.
	MaxPaths = 8

	// KindSingle is a packet that was not segmented: its number is the base.
	KindSingle = 0
	// KindID is a segment of a UDP datagram of IPv4. The sender set the super-packet's IP identification to the low 16
	// bits of the base, and segmentation increments the identification.
	KindID = 1
	// KindSequence is a segment of a TCP super-packet. The base is the number of the last segment, and end has the low
	// 16 bits of the sequence number that follows the last segment.
	KindSequence = 2
)

const (
	protocolTCP = 6
	ipv4Header  = 20
	ipv6Header  = 40
	tcpHeader   = 20
)

// ErrHeader is the error of a data header, or of the inner packet behind it, that no sender writes.
var ErrHeader = errors.New("malformed data packet")

// Header is a data header.
type Header struct {
	Kind uint8 // KindSingle, KindID or KindSequence
	Path uint8 // below MaxPaths
	// Set has bit i if a copy leaves on path i.
	Set   uint8
	Flow  uint8
	End   uint16
	Epoch uint16
	Base  uint32
	// Sent is the send time in µs modulo 2^32, on the clock CLOCK_MONOTONIC of the sender.
	Sent uint32
}

// Append appends the encoded header to b.
func (h *Header) Append(b []byte) []byte {
	b = append(b, HeaderVersion<<4|h.Kind, h.Path, h.Set, h.Flow)
	b = binary.BigEndian.AppendUint16(b, h.End)
	b = binary.BigEndian.AppendUint16(b, h.Epoch)
	b = binary.BigEndian.AppendUint32(b, h.Base)
	return binary.BigEndian.AppendUint32(b, h.Sent)
}

// ParseHeader decodes the data header at the start of a UDP payload. It fails with ErrHeader for control messages.
func ParseHeader(b []byte) (Header, error) {
	if len(b) < HeaderSize {
		return Header{}, fmt.Errorf("%w: %d bytes, a header has %d", ErrHeader, len(b), HeaderSize)
	}
	h := Header{
		Kind:  b[0] & 15,
		Path:  b[1],
		Set:   b[2],
		Flow:  b[3],
		End:   binary.BigEndian.Uint16(b[4:]),
		Epoch: binary.BigEndian.Uint16(b[6:]),
		Base:  binary.BigEndian.Uint32(b[8:]),
		Sent:  binary.BigEndian.Uint32(b[12:]),
	}
	switch {
	case b[0]>>4 != HeaderVersion:
		return Header{}, fmt.Errorf("%w: version %d, expected %d", ErrHeader, b[0]>>4, HeaderVersion)
	case h.Kind > KindSequence:
		return Header{}, fmt.Errorf("%w: kind %d, expected at most %d", ErrHeader, h.Kind, KindSequence)
	case h.Path >= MaxPaths:
		return Header{}, fmt.Errorf("%w: path %d, the limit is %d", ErrHeader, h.Path, MaxPaths-1)
	}
	return h, nil
}

// Number returns the number of the packet whose inner IP packet is given.
//
// The segments of a TCP super-packet have payloads of equal length L, except the last one, which may be shorter. A
// segment whose payload ends e bytes before the end of the super-packet has ceil(e/L) segments behind it: the last of
// these may be shorter than L. The last segment has e = 0, so its own length does not matter.
func (h *Header) Number(inner []byte) (uint32, error) {
	switch h.Kind {
	case KindSingle:
		return h.Base, nil
	case KindID:
		if len(inner) < ipv4Header || inner[0]>>4 != 4 {
			return 0, fmt.Errorf("%w: numbered by the identification, without IPv4", ErrHeader)
		}
		return h.Base + uint32(binary.BigEndian.Uint16(inner[4:])-uint16(h.Base)), nil
	}
	tcp, length, err := findTCP(inner)
	if err != nil {
		return 0, err
	}
	behind := uint32(h.End - uint16(binary.BigEndian.Uint32(tcp[4:])) - length)
	return h.Base - (behind+uint32(length)-1)/uint32(length), nil
}

// findTCP returns the TCP header of an IP packet without options or extension headers, and the length of the payload,
// which is not 0.
func findTCP(inner []byte) (tcp []byte, length uint16, err error) {
	var size int
	switch {
	case len(inner) >= ipv4Header+tcpHeader && inner[0] == 0x45 && inner[9] == protocolTCP:
		tcp, size = inner[ipv4Header:], int(binary.BigEndian.Uint16(inner[2:]))-ipv4Header
	case len(inner) >= ipv6Header+tcpHeader && inner[0]>>4 == 6 && inner[6] == protocolTCP:
		tcp, size = inner[ipv6Header:], int(binary.BigEndian.Uint16(inner[4:]))
	default:
		return nil, 0, fmt.Errorf("%w: numbered by the sequence number, without TCP", ErrHeader)
	}
	header := int(tcp[12]>>4) * 4
	if header < tcpHeader || size <= header {
		return nil, 0, fmt.Errorf("%w: TCP segment of %d bytes with a header of %d", ErrHeader, size, header)
	}
	return tcp, uint16(size - header), nil
}
