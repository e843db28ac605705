package track

import (
	"math/bits"
	"slices"
	"sync/atomic"

	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/switching"
)

// MaxFramePackets is the maximum number of packets of a frame that a slot can number (switching.Packet).
const MaxFramePackets = 1<<15 - 1

// keptGaps is the number of frames with lost packets that a track remembers, because a slot may still begin one of
// them: the frames of a third of a second at 90 frames per second.
const keptGaps = 32

// Gap is a frame of payload v1 with lost packets: packets that the server has given up and no longer requests. Only
// lost changes after the gap is published.
type Gap struct {
	// Facts are the facts of a packet of the frame that has arrived.
	Facts switching.Packet
	// lost has one bit per packet of the frame, set if the packet is lost. The ingress changes single bits while
	// writers read others, so that a late packet costs one atomic operation, regardless of the length of the frame.
	lost []atomic.Uint64
	// Change is the number of the change of the track's gaps in which the frame last lost packets.
	Change uint64
}

// newGap returns the gap of a frame without lost packets.
func newGap(facts *switching.Packet) *Gap {
	return &Gap{Facts: *facts, lost: make([]atomic.Uint64, (int(facts.FramePackets)+63)/64)}
}

// lose marks the packets at these indexes in the frame as lost.
func (g *Gap) lose(places []int) {
	for _, place := range places {
		g.lost[place/64].Or(1 << (place % 64))
	}
}

// came marks the packet at an index in the frame as not lost.
func (g *Gap) came(place int) { g.lost[place/64].And(^uint64(1 << (place % 64))) }

// Lost appends the indexes of the lost packets among the first packets of the frame, in ascending order.
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

// Completes reports whether a receiver can complete the frame from its packets up to sequence number last. The indexes
// of lost packets are collected in the scratch, which is at most as long as a frame.
func (g *Gap) Completes(last int64, scratch *[]int) bool {
	packets := int(last-g.Facts.FrameStart) + 1
	*scratch = g.Lost((*scratch)[:0], packets)
	return payload.Completable(g.Facts.SourcePackets, packets, *scratch)
}

// Gaps are the latest frames of a track with lost packets. A frame that loses packets replaces the Gaps.
type Gaps struct {
	// Frames are in the order of their latest loss. Change counts the changes so far.
	Frames []*Gap
	Change uint64
	// newest is the highest frame number in Frames.
	newest int64
}

// Find returns the gap of a frame, or nil if there is none.
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

// with returns gaps in which the gap is added, or replaces the former gap of the frame.
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

// Losses are the lost packets of a track. The reader changes them. Gaps is safe for any goroutine.
type Losses struct {
	gaps atomic.Pointer[Gaps]
	// changes counts the changes of the gaps.
	changes uint64
}

// Gaps returns the latest frames with lost packets, nil before the first.
func (l *Losses) Gaps() *Gaps { return l.gaps.Load() }

// Lose adds lost packets to a frame's gap, by their indexes in the frame. frame is a packet of the frame that has
// arrived. Only the reader calls Lose.
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

// Came marks a packet that has arrived as not lost, in case it was given up. Only the reader calls Came.
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

// Forget forgets all gaps. Only the reader calls Forget.
func (l *Losses) Forget() { l.gaps.Store(nil) }

// Losses returns the lost packets of the track.
func (t *Track) Losses() *Losses { return &t.losses }

// TellGaps notifies the followers that the gaps have changed.
func (t *Track) TellGaps() {
	for _, f := range *t.followers.Load() {
		f.Gapped()
	}
}

// Covers reports whether a sequence number belongs to the frame of a packet.
func Covers(p *switching.Packet, sequence int64) bool {
	return sequence >= p.FrameStart && sequence < p.FrameStart+int64(p.FramePackets)
}
