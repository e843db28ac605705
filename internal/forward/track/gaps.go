package track

import (
	"math/bits"
	"slices"
	"sync/atomic"

	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/switching"
)

// keptGaps is how many frames of a track with packets that will not come are remembered, of which a slot may still
// begin one: those of a third of a second at 90 frames per second.
const keptGaps = 32

// Gap is a frame of payload v1 of which packets will not come any more: the server has given them up, and asks for
// them no longer. Only lost changes after the gap is published.
type Gap struct {
	// Facts are those of a packet that has come of the frame.
	Facts switching.Packet
	// lost has a bit for each packet of the frame, which is set if the packet will not come. The ingress changes single
	// bits while writers read others: a late packet then costs one atomic operation, whatever the length of the frame.
	lost []atomic.Uint64
	// Change is the change of the track's gaps in which the frame last lost packets.
	Change uint64
}

// newGap makes the gap of a frame without lost packets.
func newGap(facts *switching.Packet) *Gap {
	return &Gap{Facts: *facts, lost: make([]atomic.Uint64, (int(facts.FramePackets)+63)/64)}
}

// lose marks the packets at these places in the frame as lost.
func (g *Gap) lose(places []int) {
	for _, place := range places {
		g.lost[place/64].Or(1 << (place % 64))
	}
}

// came marks the packet at a place in the frame as one that is not lost.
func (g *Gap) came(place int) { g.lost[place/64].And(^uint64(1 << (place % 64))) }

// Lost appends the places of the lost packets among the first packets of the frame, ascending.
func (g *Gap) Lost(to []int, packets int) []int {
	for i := range g.lost {
		for word := g.lost[i].Load(); word != 0; word &= word - 1 {
			place := i*64 + bits.TrailingZeros64(word)
			if place >= packets {
				return to
			}
			to = append(to, place)
		}
	}
	return to
}

// Completes reports whether a receiver that is sent the frame's packets up to an input number can complete the frame.
// The places of lost packets are gathered in the scratch, which is at most as long as a frame.
func (g *Gap) Completes(last int64, scratch *[]int) bool {
	packets := int(last-g.Facts.FrameStart) + 1
	*scratch = g.Lost((*scratch)[:0], packets)
	return payload.Completable(g.Facts.SourcePackets, packets, *scratch)
}

// Gaps are the latest frames of a track with packets that will not come. They are replaced when a frame loses
// packets.
type Gaps struct {
	// Frames are in the order in which their first packet was given up. Change counts the changes so far.
	Frames []*Gap
	Change uint64
	// newest is the highest number of the frames.
	newest int64
}

// Find returns the gap of a frame, nil if there is none.
func (g *Gaps) Find(frame int64) *Gap {
	if g == nil || frame > g.newest {
		return nil
	}
	for _, gap := range g.Frames {
		if gap.Facts.Frame == frame {
			return gap
		}
	}
	return nil
}

// with gives the gaps with one replaced, or added.
func (g *Gaps) with(gap *Gap, change uint64) *Gaps {
	next := &Gaps{newest: gap.Facts.Frame, Change: change}
	if g != nil {
		next.newest = max(next.newest, g.newest)
		next.Frames = slices.DeleteFunc(slices.Clone(g.Frames),
			func(other *Gap) bool { return other.Facts.Frame == gap.Facts.Frame })
	}
	if len(next.Frames) == keptGaps {
		next.Frames = slices.Delete(next.Frames, 0, 1)
	}
	gap.Change = change
	next.Frames = append(next.Frames, gap)
	return next
}

// Losses are the packets of a track that will not come. The reader changes them. Gaps is safe for any goroutine.
type Losses struct {
	gaps atomic.Pointer[Gaps]
	// changes counts the changes of the gaps.
	changes uint64
}

// Gaps are the latest frames with packets that will not come, nil before the first.
func (l *Losses) Gaps() *Gaps { return l.gaps.Load() }

// Lose adds lost packets to a frame's gap, by their places in the frame. frame is a packet that has come of the frame.
// Lose is for the reader.
func (l *Losses) Lose(frame *switching.Packet, lost []int) {
	gaps, gap := l.gaps.Load(), newGap(frame)
	if before := gaps.Find(frame.Frame); before != nil {
		if before.Facts.FrameStart == frame.FrameStart && len(before.lost) >= len(gap.lost) {
			gap.lost = before.lost
		} else {
			gap.lose(before.Lost(nil, int(frame.FramePackets)))
		}
	}
	gap.lose(lost)
	l.changes++
	l.gaps.Store(gaps.with(gap, l.changes))
}

// Came notes a packet that has come after all, though it may have been given up. It is for the reader.
func (l *Losses) Came(sequence int64) {
	gaps := l.gaps.Load()
	if gaps == nil {
		return
	}
	for _, gap := range gaps.Frames {
		if Covers(&gap.Facts, sequence) {
			gap.came(int(sequence - gap.Facts.FrameStart))
			return
		}
	}
}

// Forget forgets all gaps. It is for the reader.
func (l *Losses) Forget() { l.gaps.Store(nil) }

// Losses are the packets of the track that will not come.
func (t *Track) Losses() *Losses { return &t.losses }

// TellGaps has the followers look at the gaps.
func (t *Track) TellGaps() {
	for _, f := range *t.followers.Load() {
		f.Gapped()
	}
}

// Covers reports whether a sequence number is one of the frame of a packet.
func Covers(p *switching.Packet, sequence int64) bool {
	return sequence >= p.FrameStart && sequence < p.FrameStart+int64(p.FramePackets)
}
