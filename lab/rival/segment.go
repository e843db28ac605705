package rival

import (
	"encoding/binary"

	"github.com/volsfu/volsfu/internal/ecn"
)

// A segment has a magic number and its own number. An acknowledgement has a magic number and a list of entries, each
// with the number of a segment and the codepoint with which the segment arrived. Numbers are big-endian.
const (
	segmentMagic, ackMagic uint32 = 0x56505331, 0x56504131 // VPS1 and VPA1

	magicBytes    = 4
	segmentHeader = magicBytes + 8
	ackEntry      = 8 + 1
	// maxAckEntries keeps an acknowledgement within 1,200 bytes: 4 + 132 × 9 = 1,192.
	maxAckEntries = 132
)

// appendSegment appends a segment of a payload of size bytes.
func appendSegment(b []byte, number uint64, size int) []byte {
	begin := len(b)
	b = binary.BigEndian.AppendUint32(b, segmentMagic)
	b = binary.BigEndian.AppendUint64(b, number)
	return append(b, make([]byte, size-(len(b)-begin))...)
}

// parseSegment returns the number of a segment, or false if the payload is not a segment.
func parseSegment(b []byte) (number uint64, ok bool) {
	if len(b) < segmentHeader || binary.BigEndian.Uint32(b) != segmentMagic {
		return 0, false
	}
	return binary.BigEndian.Uint64(b[magicBytes:]), true
}

// acknowledgement reports the arrival of a segment.
type acknowledgement struct {
	number    uint64
	codepoint ecn.Codepoint
}

// appendAcknowledgements appends a datagram with acknowledgements, at most maxAckEntries.
func appendAcknowledgements(b []byte, list []acknowledgement) []byte {
	b = binary.BigEndian.AppendUint32(b, ackMagic)
	for _, a := range list {
		b = binary.BigEndian.AppendUint64(b, a.number)
		b = append(b, byte(a.codepoint))
	}
	return b
}

// parseAcknowledgements appends the acknowledgements of a datagram to list. ok is false if the datagram is malformed;
// then list is unchanged.
func parseAcknowledgements(b []byte, list []acknowledgement) (_ []acknowledgement, ok bool) {
	if len(b) < magicBytes || binary.BigEndian.Uint32(b) != ackMagic || (len(b)-magicBytes)%ackEntry != 0 {
		return list, false
	}
	before := len(list)
	for b = b[magicBytes:]; len(b) > 0; b = b[ackEntry:] {
		codepoint := ecn.Codepoint(b[ackEntry-1])
		if codepoint > ecn.CE {
			return list[:before], false
		}
		list = append(list, acknowledgement{binary.BigEndian.Uint64(b), codepoint})
	}
	return list, true
}
