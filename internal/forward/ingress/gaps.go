package ingress

import (
	"math"

	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/pkg/switching"
)

// lose takes note of packets that will not come any more, by their numbers, ascending, and reports whether frames are
// hurt of which something has come. Of the others nothing can be sent.
func (s *stream) lose(numbers []int64) (hurt bool) {
	log := s.track.Log()
	var frame *switching.Packet
	var lost []int
	// Below empty no frame has come of which anything is known.
	empty := int64(math.MinInt64)
	for _, n := range numbers {
		if frame != nil && !track.Covers(frame, n) {
			s.track.Losses().Lose(frame, lost)
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
		s.track.Losses().Lose(frame, lost)
	}
	return hurt
}

// around finds a packet in the log whose frame a number belongs to that is not in the log, among those up to the
// highest. Where there is none, no number below the returned one belongs to the frame of a packet in the log. Only who
// appends may call it. A frame is at most maxFramePackets long, so that a call takes half a millisecond at most, and
// only where thousands of packets have not come in a row.
func around(log *packetlog.Log, n, highest int64) (frame *switching.Packet, empty int64) {
	for below := n - 1; below > n-maxFramePackets; below-- {
		if p := log.Peek(below); p != nil {
			if track.Covers(&p.Facts, n) {
				return &p.Facts, n
			}
			break
		}
	}
	for above := n + 1; above <= min(highest, n+maxFramePackets); above++ {
		if p := log.Peek(above); p != nil {
			if track.Covers(&p.Facts, n) {
				return &p.Facts, n
			}
			return nil, max(n+1, min(above, p.Facts.FrameStart))
		}
	}
	return nil, n + maxFramePackets
}
