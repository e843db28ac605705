package frametrace

import (
	"time"

	"github.com/volsfu/volsfu/pkg/frametimes"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Stages holds the times of the stages of a frame before the program wrote it, by the system's clock, zero if unknown.
type Stages struct {
	Acquired, TilingBegan, Tiled, EncodingBegan, Encoded time.Time
}

// Sent holds the times of a frame that is sent. The exported fields are set when the program writes the frame. Bytes is
// the size of the encoded tile.
type Sent struct {
	Publication string
	Tile        int
	Quality     volumetric.Quality
	Number      uint32
	Bytes       int
	Capture     time.Time
	Stages      Stages

	first, segment, last time.Time
	// ssrc and sequence are those of the first packet.
	ssrc     uint32
	sequence uint16
}

// Mark is the set of a frame's stamps that a packet of the frame has.
type Mark uint8

// The stamps: of the first packet, of the packet that completes the first segment, and of the last packet.
const (
	First Mark = 1 << iota
	Segment
	Last
)

// segmentPackets is the number of packets that hold a frame's first segment.
const segmentPackets = (frametimes.SegmentBytes + 1143) / 1144

// Mark returns the mark of the packet with an index among the packets of the frame, and keeps the SSRC and the sequence
// number of the first packet. It is 0 for a frame that is not traced, which is nil.
func (s *Sent) Mark(ssrc uint32, sequence uint16, index, packets int) (m Mark) {
	if s == nil {
		return 0
	}
	if index == 0 {
		m |= First
		s.ssrc, s.sequence = ssrc, sequence
	}
	if index == min(segmentPackets, packets)-1 {
		m |= Segment
	}
	if index == packets-1 {
		m |= Last
	}
	return m
}

// Leaves records that a marked packet is handed to the socket.
func (s *Sent) Leaves(m Mark, now time.Time) {
	if m&First != 0 {
		s.first = now
	}
	if m&Segment != 0 {
		s.segment = now
	}
	if m&Last != 0 {
		s.last = now
	}
}

// record returns the sender's times of the frame.
func (s *Sent) record(identity string, clock frametimes.Clock, shift time.Duration) frametimes.Record {
	r := frametimes.Record{Frame: int64(s.Number), Bytes: s.Bytes}
	r.Track.Participant, r.Track.Publication = identity, s.Publication
	r.Track.Tile, r.Track.Quality = s.Tile, s.Quality
	r.Clocks[frametimes.Sender] = clock
	for stamp, at := range map[frametimes.Stamp]time.Time{
		frametimes.Captured:         s.Capture,
		frametimes.Acquired:         s.Stages.Acquired,
		frametimes.TilingBegan:      s.Stages.TilingBegan,
		frametimes.Tiled:            s.Stages.Tiled,
		frametimes.EncodingBegan:    s.Stages.EncodingBegan,
		frametimes.Encoded:          s.Stages.Encoded,
		frametimes.FirstSent:        s.first,
		frametimes.FirstSegmentSent: s.segment,
		frametimes.LastSent:         s.last,
	} {
		if !at.IsZero() {
			r.SetLocal(stamp, at.Add(shift))
		}
	}
	return r
}
