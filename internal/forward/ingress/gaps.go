package ingress

import (
	"math"

	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/pkg/switching"
)

// lose records packets as lost, by ascending sequence numbers, and reports whether frames with arrived packets are
// affected. Frames without arrived packets cannot be sent anyway.
func (s *stream) lose(numbers []int64) (hurt bool) {
	log := s.track.Log()
	var frame *switching.Packet
	var lost []int
	// No packet has arrived of the frames of numbers below empty.
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

// around looks in the log for a packet of the frame to which the missing number n belongs, among numbers up to highest.
// If there is none, no number below empty belongs to the frame of a packet in the log. Only the goroutine that appends
// calls around. A frame is at most track.MaxFramePackets long, so a call takes at most half a millisecond, and only if
// thousands of successive packets are missing.
func around(log *packetlog.Log, n, highest int64) (frame *switching.Packet, empty int64) {
	for below := n - 1; below > n-track.MaxFramePackets; below-- {
		if p := log.Peek(below); p != nil {
			if track.Covers(&p.Facts, n) {
				return &p.Facts, n
			}
			break
		}
	}
	for above := n + 1; above <= min(highest, n+track.MaxFramePackets); above++ {
		if p := log.Peek(above); p != nil {
			if track.Covers(&p.Facts, n) {
				return &p.Facts, n
			}
			return nil, max(n+1, min(above, p.Facts.FrameStart))
		}
	}
	return nil, n + track.MaxFramePackets
}
