package forward

import (
	"math"
	"math/bits"
	"slices"
	"sync/atomic"

	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/switching"
)

// keptGaps is how many frames of a track with packets that will not come are remembered, of which a slot may still begin one: those of a third of a second at 90 frames
// per second.
const keptGaps = 32

// frameGap is a frame of payload v1 of which packets will not come any more: the server has given them up, and asks for
// them no longer. Only lost changes after the gap is published.
type frameGap struct {
	// facts are those of a packet that has come of the frame.
	facts switching.Packet
	// lost has a bit for each packet of the frame, which is set if the packet will not come. The ingress changes single
	// bits while writers read others: a late packet then costs one atomic operation, whatever the length of the frame.
	lost []atomic.Uint64
	// change is the change of the track's gaps in which the frame last lost packets.
	change uint64
}

// newFrameGap makes the gap of a frame without lost packets.
func newFrameGap(facts *switching.Packet) *frameGap {
	return &frameGap{facts: *facts, lost: make([]atomic.Uint64, (int(facts.FramePackets)+63)/64)}
}

// lose marks the packets at these places in the frame as lost.
func (g *frameGap) lose(places []int) {
	for _, place := range places {
		g.lost[place/64].Or(1 << (place % 64))
	}
}

// came marks the packet at a place in the frame as one that is not lost.
func (g *frameGap) came(place int) { g.lost[place/64].And(^uint64(1 << (place % 64))) }

// places appends the places of the lost packets among the first packets of the frame, ascending.
func (g *frameGap) places(to []int, packets int) []int {
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

// completes reports whether a receiver that is sent the frame's packets up to an input number can complete the frame.
// The places of lost packets are gathered in the scratch, which is at most maxFramePackets long.
func (g *frameGap) completes(last int64, scratch *[]int) bool {
	packets := int(last-g.facts.FrameStart) + 1
	*scratch = g.places((*scratch)[:0], packets)
	return payload.Completable(g.facts.SourcePackets, packets, *scratch)
}

// frameGaps are the latest frames of a track with packets that will not come. They are replaced when a frame loses
// packets.
type frameGaps struct {
	// frames are in the order in which their first packet was given up; newest is the highest of their numbers.
	frames []*frameGap
	newest int64
	change uint64
}

// find gives the gap of a frame, nil where there is none.
func (g *frameGaps) find(frame int64) *frameGap {
	if g == nil || frame > g.newest {
		return nil
	}
	for _, gap := range g.frames {
		if gap.facts.Frame == frame {
			return gap
		}
	}
	return nil
}

// with gives the gaps with one replaced, or added.
func (g *frameGaps) with(gap *frameGap, change uint64) *frameGaps {
	next := &frameGaps{newest: gap.facts.Frame, change: change}
	if g != nil {
		next.newest = max(next.newest, g.newest)
		next.frames = slices.DeleteFunc(slices.Clone(g.frames), func(other *frameGap) bool { return other.facts.Frame == gap.facts.Frame })
	}
	if len(next.frames) == keptGaps {
		next.frames = slices.Delete(next.frames, 0, 1)
	}
	gap.change = change
	next.frames = append(next.frames, gap)
	return next
}

// lose takes note of packets that will not come any more, by their numbers, ascending, and tells whether frames are hurt of which something has come. Of the others nothing can be sent.
func (s *stream) lose(numbers []int64) (hurt bool) {
	log := s.track.log
	var frame *switching.Packet
	var lost []int
	// Below empty no frame has come of which anything is known.
	empty := int64(math.MinInt64)
	for _, n := range numbers {
		if frame != nil && !covers(frame, n) {
			s.gapped(frame, lost)
			frame, lost = nil, nil
		}
		if frame == nil {
			if n < empty {
				continue
			}
			if frame, empty = around(log, n, s.facts.highest); frame == nil {
				continue
			}
			hurt = true
		}
		lost = append(lost, int(n-frame.FrameStart))
	}
	if frame != nil {
		s.gapped(frame, lost)
	}
	return hurt
}

// gapped adds lost packets to a frame's gap, by their places in the frame.
func (s *stream) gapped(frame *switching.Packet, lost []int) {
	gaps, gap := s.track.gaps.Load(), newFrameGap(frame)
	if before := gaps.find(frame.Frame); before != nil {
		if before.facts.FrameStart == frame.FrameStart && len(before.lost) >= len(gap.lost) {
			gap.lost = before.lost
		} else {
			gap.lose(before.places(nil, int(frame.FramePackets)))
		}
	}
	gap.lose(lost)
	s.gapChanges++
	s.track.gaps.Store(gaps.with(gap, s.gapChanges))
}

// came takes note of a packet that has come after all, though it may have been given up.
func (s *stream) came(n int64) {
	gaps := s.track.gaps.Load()
	if gaps == nil {
		return
	}
	for _, gap := range gaps.frames {
		if covers(&gap.facts, n) {
			gap.came(int(n - gap.facts.FrameStart))
			return
		}
	}
}

// covers tells whether a number is one of the frame's of a packet.
func covers(p *switching.Packet, n int64) bool {
	return n >= p.FrameStart && n < p.FrameStart+int64(p.FramePackets)
}

// around finds a packet in the log whose frame a number belongs to that is not in the log, among those up to the highest. Where there is none, no number below the returned one belongs
// to the frame of a packet in the log. Only who appends may call it. A frame is at most maxFramePackets long, so that a call takes half a millisecond at most, and
// only where thousands of packets have not come in a row.
func around(log *packetlog.Log, n, highest int64) (frame *switching.Packet, empty int64) {
	for below := n - 1; below > n-maxFramePackets; below-- {
		if p := log.Peek(below); p != nil {
			if covers(&p.Facts, n) {
				return &p.Facts, n
			}
			break
		}
	}
	for above := n + 1; above <= min(highest, n+maxFramePackets); above++ {
		if p := log.Peek(above); p != nil {
			if covers(&p.Facts, n) {
				return &p.Facts, n
			}
			return nil, max(n+1, min(above, p.Facts.FrameStart))
		}
	}
	return nil, n + maxFramePackets
}
