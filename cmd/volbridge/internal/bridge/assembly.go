package bridge

import (
	"slices"
	"time"

	"github.com/volsfu/volsfu/pkg/vr2gather"
)

const (
	// maxFrame is how long a frame may be, in bytes: what servers take unless they are told otherwise.
	maxFrame = 16 << 20
	// maxHeld is how many bytes the frames under way may take together.
	maxHeld = 64 << 20
	// maxUnderWay is how many frames of one track may be under way. A connector sends one after the other.
	maxUnderWay = 2
	// maxPieces is how many pieces of a frame may be there with gaps between them.
	maxPieces = 64
	// firstPiece is how many bytes are reserved for a frame at first, if it says that it has so many: memory follows
	// what has come, not what is announced.
	firstPiece = 256 << 10
	// patience is how long the rest of a frame is waited for. Its packets come from the same machine, in one go.
	patience = 500 * time.Millisecond
)

// Assembly puts frames together from their packets. What it keeps is bounded, whatever comes.
type Assembly struct {
	tally  *Tally
	tracks []track
	// underWay are the frames under way of all tracks, the oldest first; held is what they take, in bytes.
	underWay []*partial
	held     int
}

// track is one stream of frames.
type track struct {
	order    order
	underWay []*partial
}

// partial is a frame under way.
type partial struct {
	track  int
	number uint32
	length int
	began  time.Time
	data   []byte
	// pieces are the parts that are there, in order, no two of them adjacent.
	pieces []piece
}

type piece struct{ begin, end int }

// NewAssembly makes an assembly of so many tracks, which counts what it drops.
func NewAssembly(tracks int, tally *Tally) *Assembly {
	return &Assembly{tally: tally, tracks: make([]track, tracks)}
}

// Push takes a packet of a track, as its parser let it through. It returns the frame that the packet completes, which
// is the caller's to keep, or nil.
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
	if drop, ok := f.place(piece{int(p.Offset), int(p.Offset) + len(p.Data)}); !ok {
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
	// Frames of a track come one after the other: those that began before this one have lost packets.
	for len(t.underWay) > 0 && t.order.late(t.underWay[0].number) {
		a.giveUp(t.underWay[0])
	}
	return f.data
}

// Late tells whether a frame of a track would be refused for its number.
func (a *Assembly) Late(index int, number uint32) bool { return a.tracks[index].order.late(number) }

// Anew says that a track begins anew: what comes next is not late, whatever its number. What is under way is given up.
func (a *Assembly) Anew(index int) {
	t := &a.tracks[index]
	for len(t.underWay) > 0 {
		a.giveUp(t.underWay[0])
	}
	t.order = order{}
}

// Expire gives up the frames whose rest does not come.
func (a *Assembly) Expire(now time.Time) {
	for len(a.underWay) > 0 && now.Sub(a.underWay[0].began) >= patience {
		a.giveUp(a.underWay[0])
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

// begin makes room for a frame.
func (a *Assembly) begin(index int, p *vr2gather.Packet, now time.Time) *partial {
	t := &a.tracks[index]
	if len(t.underWay) == maxUnderWay {
		a.giveUp(t.underWay[0])
	}
	f := &partial{track: index, number: p.Frame, length: int(p.Length), began: now}
	t.underWay = append(t.underWay, f)
	a.underWay = append(a.underWay, f)
	return f
}

// place takes note of a piece, and tells why it is not taken otherwise.
func (f *partial) place(p piece) (Drop, bool) {
	if f.length == 0 {
		return 0, true
	}
	i := slices.IndexFunc(f.pieces, func(other piece) bool { return other.end >= p.begin })
	if i < 0 {
		i = len(f.pieces)
	}
	// The pieces from i to j touch it.
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

// store copies the data of a packet to its place.
func (a *Assembly) store(f *partial, p *vr2gather.Packet) {
	end := int(p.Offset) + len(p.Data)
	if end > len(f.data) {
		grown := make([]byte, min(f.length, max(end, firstPiece, 2*len(f.data))))
		copy(grown, f.data)
		a.held += len(grown) - len(f.data)
		f.data = grown
	}
	copy(f.data[p.Offset:], p.Data)
}

func (f *partial) complete() bool {
	return f.length == 0 || f.pieces[0] == piece{0, f.length}
}

// shrink gives up the oldest frames while all together take too much, but not the one that has just grown.
func (a *Assembly) shrink(grown *partial) {
	for a.held > maxHeld {
		oldest := a.underWay[0]
		if oldest == grown {
			if len(a.underWay) == 1 {
				return
			}
			oldest = a.underWay[1]
		}
		a.giveUp(oldest)
	}
}

// giveUp forgets a frame that will not be complete. What comes of it still is late.
func (a *Assembly) giveUp(f *partial) {
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
	a.underWay = slices.DeleteFunc(a.underWay, is)
	a.held -= len(f.data)
}
