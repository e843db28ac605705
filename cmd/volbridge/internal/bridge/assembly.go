package bridge

import (
	"slices"
	"time"

	"github.com/volsfu/volsfu/pkg/vr2gather"
)

const (
	// maxFrame is the largest frame in bytes, the default limit of servers.
	maxFrame = 16 << 20
	// maxMemory bounds the memory of all incomplete frames together, in bytes.
	maxMemory = 64 << 20
	// maxIncomplete is the number of incomplete frames of one track. A connector sends one frame after the other.
	maxIncomplete = 2
	// maxPieces is the number of disjoint pieces of a frame.
	maxPieces = 64
	// firstAllocation is the number of bytes that are allocated for a frame at first, if the frame announces at least
	// that size. Memory grows with the received data, not with the announced size.
	firstAllocation = 256 << 10
	// completionTimeout is the time for which the rest of a frame is awaited. The packets come from the same machine,
	// in one burst.
	completionTimeout = 500 * time.Millisecond
)

// Assembly reassembles frames from packets. The memory is bounded for any input.
type Assembly struct {
	tally  *Tally
	tracks []track
	// incomplete has the incomplete frames of all tracks, the oldest first. memory is the memory of these frames in
	// bytes.
	incomplete []*partial
	memory     int
}

// track is one stream of frames.
type track struct {
	order    order
	underWay []*partial
}

// partial is an incomplete frame.
type partial struct {
	track  int
	number uint32
	length int
	began  time.Time
	data   []byte
	// pieces has the received ranges in order. No two ranges are adjacent.
	pieces []piece
}

type piece struct{ begin, end int }

// NewAssembly returns an assembly of the given number of tracks. The assembly counts dropped packets in tally.
func NewAssembly(tracks int, tally *Tally) *Assembly {
	return &Assembly{tally: tally, tracks: make([]track, tracks)}
}

// Push adds a packet of a track. The packet was checked by its parser. Push returns the frame that the packet
// completes, owned by the caller, or nil.
func (a *Assembly) Push(index int, p *vr2gather.Packet, now time.Time) []byte {
	if index < 0 || index >= len(a.tracks) {
		a.tally.Add(DropTrack)
		return nil
	}
	t := &a.tracks[index]
	f := t.find(p.Frame)
	switch {
	case p.Length > maxFrame:
		a.tally.Add(DropSize)
		return nil
	case f == nil && t.order.late(p.Frame):
		a.tally.Add(DropLate)
		return nil
	case f == nil:
		f = a.begin(index, p, now)
	case f.length != int(p.Length):
		a.tally.Add(DropContradiction)
		return nil
	}
	if drop, ok := f.insert(piece{int(p.Offset), int(p.Offset) + len(p.Data)}); !ok {
		a.tally.Add(drop)
		return nil
	}
	a.store(f, p)
	if !f.complete() {
		a.shrink(f)
		return nil
	}
	a.remove(f)
	t.order.advance(f.number)
	// The frames of a track are sent one after the other. An older frame that is still incomplete has lost packets.
	for len(t.underWay) > 0 && t.order.late(t.underWay[0].number) {
		a.drop(t.underWay[0])
	}
	return f.data
}

// Late reports whether a frame with this number would be dropped as late.
func (a *Assembly) Late(index int, number uint32) bool { return a.tracks[index].order.late(number) }

// Restart restarts a track: the next frame is accepted whatever its number is. Incomplete frames are dropped.
func (a *Assembly) Restart(index int) {
	t := &a.tracks[index]
	for len(t.underWay) > 0 {
		a.drop(t.underWay[0])
	}
	t.order = order{}
}

// Expire drops the frames that have been incomplete for longer than completionTimeout.
func (a *Assembly) Expire(now time.Time) {
	for len(a.incomplete) > 0 && now.Sub(a.incomplete[0].began) >= completionTimeout {
		a.drop(a.incomplete[0])
	}
}

func (t *track) find(number uint32) *partial {
	for _, f := range t.underWay {
		if f.number == number {
			return f
		}
	}
	return nil
}

// begin adds an incomplete frame.
func (a *Assembly) begin(index int, p *vr2gather.Packet, now time.Time) *partial {
	t := &a.tracks[index]
	if len(t.underWay) == maxIncomplete {
		a.drop(t.underWay[0])
	}
	f := &partial{track: index, number: p.Frame, length: int(p.Length), began: now}
	t.underWay = append(t.underWay, f)
	a.incomplete = append(a.incomplete, f)
	return f
}

// insert records a piece. If the piece is refused, insert returns the reason.
func (f *partial) insert(p piece) (Drop, bool) {
	if f.length == 0 {
		return 0, true
	}
	i := slices.IndexFunc(f.pieces, func(other piece) bool { return other.end >= p.begin })
	if i < 0 {
		i = len(f.pieces)
	}
	// The ranges from i to j-1 overlap p or touch it.
	j := i
	merged := p
	for ; j < len(f.pieces) && f.pieces[j].begin <= p.end; j++ {
		other := f.pieces[j]
		if other.begin <= p.begin && other.end >= p.end {
			return DropDuplicate, false
		}
		if other.begin < p.end && other.end > p.begin {
			return DropContradiction, false
		}
		merged = piece{min(merged.begin, other.begin), max(merged.end, other.end)}
	}
	if i == j && len(f.pieces) == maxPieces {
		return DropContradiction, false
	}
	f.pieces = slices.Replace(f.pieces, i, j, merged)
	return 0, true
}

// store copies the data of a packet to its position.
func (a *Assembly) store(f *partial, p *vr2gather.Packet) {
	end := int(p.Offset) + len(p.Data)
	if end > len(f.data) {
		grown := make([]byte, min(f.length, max(end, firstAllocation, 2*len(f.data))))
		copy(grown, f.data)
		a.memory += len(grown) - len(f.data)
		f.data = grown
	}
	copy(f.data[p.Offset:], p.Data)
}

func (f *partial) complete() bool {
	return f.length == 0 || f.pieces[0] == piece{0, f.length}
}

// shrink drops the oldest frames while the total exceeds maxMemory, except the frame that has just grown.
func (a *Assembly) shrink(grown *partial) {
	for a.memory > maxMemory {
		oldest := a.incomplete[0]
		if oldest == grown {
			if len(a.incomplete) == 1 {
				return
			}
			oldest = a.incomplete[1]
		}
		a.drop(oldest)
	}
}

// drop drops an incomplete frame. The later packets are late.
func (a *Assembly) drop(f *partial) {
	a.remove(f)
	if t := &a.tracks[f.track]; !t.order.late(f.number) {
		t.order.advance(f.number)
	}
	a.tally.Add(DropIncomplete)
}

func (a *Assembly) remove(f *partial) {
	is := func(other *partial) bool { return other == f }
	t := &a.tracks[f.track]
	t.underWay = slices.DeleteFunc(t.underWay, is)
	a.incomplete = slices.DeleteFunc(a.incomplete, is)
	a.memory -= len(f.data)
}
