package control

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
)

// Sizes of packets, in bytes.
const (
	// fragmentSize is the payload of a full packet: a source fragment of 1,144 after the descriptor of 16.
	fragmentSize = 1160
	// originalSize is the additional size of a retransmission (RFC 4588 section 4).
	originalSize = 2
	// reportOverhead is the size of an RTCP packet without the compound: IPv4 20, UDP 8, index and tag of SRTCP 20.
	reportOverhead = 48
	// blockSize is the largest number of source fragments in one parity block.
	blockSize = 200
)

// header is the simulated header of a packet, in place of the headers of RTP and of the payload.
type header struct {
	kind feedback.PacketKind
	tile uint8
	// transport-wide, or that of the RTP stream if packets carry no transport-wide number
	number                uint16
	index, source, parity uint16
	sequence, frame       int64
	captured              time.Duration
}

const headerSize = 34

// repeats reports whether the packet belongs to the RTX stream of its tile.
func (h *header) repeats() bool { return h.kind == feedback.Retransmission || h.kind == feedback.Probe }

// ssrc returns the SSRC of the packet's RTP stream. Each tile has an SSRC for media and an SSRC for RTX.
func (h *header) ssrc() uint32 {
	if h.repeats() {
		return tiles + uint32(h.tile)
	}
	return uint32(h.tile)
}

func (h *header) marshal() []byte {
	b := make([]byte, 0, headerSize)
	b = append(b, byte(h.kind), h.tile)
	b = binary.BigEndian.AppendUint16(b, h.number)
	b = binary.BigEndian.AppendUint16(b, h.index)
	b = binary.BigEndian.AppendUint16(b, h.source)
	b = binary.BigEndian.AppendUint16(b, h.parity)
	b = binary.BigEndian.AppendUint64(b, uint64(h.sequence))
	b = binary.BigEndian.AppendUint64(b, uint64(h.frame))
	return binary.BigEndian.AppendUint64(b, uint64(h.captured))
}

// unmarshalHeader parses the result of marshal.
func unmarshalHeader(b []byte) header {
	if len(b) != headerSize {
		panic(fmt.Sprintf("control: a packet of media carries %d bytes, expected the %d that were written", len(b),
			headerSize))
	}
	return header{
		kind: feedback.PacketKind(b[0]), tile: b[1],
		number:   binary.BigEndian.Uint16(b[2:]),
		index:    binary.BigEndian.Uint16(b[4:]),
		source:   binary.BigEndian.Uint16(b[6:]),
		parity:   binary.BigEndian.Uint16(b[8:]),
		sequence: int64(binary.BigEndian.Uint64(b[10:])),
		frame:    int64(binary.BigEndian.Uint64(b[18:])),
		captured: time.Duration(binary.BigEndian.Uint64(b[26:])),
	}
}
