package switching

import (
	"slices"
	"time"
)

// endedLimit is how many ended frames are remembered, a power of two. At 90 frames per second, 23 are worth a retransmission within a deadline of 250 ms.
const endedLimit = 32

// endings are the latest frames that were ended.
type endings struct {
	frames [endedLimit]endedFrame
	count  int // of all ever; the newest is at count-1
}

type endedFrame struct {
	track TrackID
	// frame is the number of a framed packet's frame, and the timestamp of a foreign one's.
	frame int64
}

// endedFrame names the packet's frame.
func (p *Packet) endedFrame() endedFrame {
	if p.Framed {
		return endedFrame{p.Track, p.Frame}
	}
	return endedFrame{p.Track, int64(p.Timestamp)}
}

func (e *endings) add(f endedFrame) {
	e.frames[e.count&(endedLimit-1)] = f
	e.count++
}

func (e *endings) has(p *Packet) bool {
	return e.count > 0 && slices.Contains(e.frames[:min(e.count, endedLimit)], p.endedFrame())
}

// Planned is the range of input numbers of the packet's frame that go out: those that have numbers in the outgoing stream, once the frame has begun, or
// those that would have if it began now.
func (s *Switcher) Planned(p *Packet) (first, last int64, begun bool) {
	first, last = p.planned(s.parity)
	r := s.history.carrying(p)
	if r == nil {
		return first, last, false
	}
	_, last = p.extent()
	return max(first, r.first), min(last, r.last), true
}

// End says that the frame of a packet cannot be completed any more at the receiver, whatever comes. What has not been sent of it is not sent. Where it is the
// newest that has begun, the numbers that are reserved for its rest are given back, and its track goes on at its next frame that opens; the numbers of an older
// one stay holes, since later ones have been sent. A foreign frame is taken for the one under way, and ends as with Overrun. End returns false where there
// is nothing to end: the frame has not begun, or was ended before, by Overrun perhaps.
func (s *Switcher) End(p *Packet, now time.Time) bool {
	if !p.Framed {
		if !s.open || p.Track != s.active.Track {
			return false
		}
		s.endings.add(p.endedFrame())
		s.history.back(0).ended = p.Frame + 1
		s.Overrun(now)
		return true
	}
	r := s.history.carrying(p)
	if r == nil || s.Ended(p) {
		return false
	}
	s.endings.add(p.endedFrame())
	r.ended = max(r.ended, p.Frame+1)
	if r == s.history.back(0) && p.Frame == r.frame {
		s.giveBack(r, p, now)
	}
	return true
}

// Ended says whether the frame of a packet is among the latest that were ended, so that a retransmission is of no use.
func (s *Switcher) Ended(p *Packet) bool { return s.endings.has(p) }

// giveBack gives back what the newest run has reserved of its newest frame above the highest number sent.
func (s *Switcher) giveBack(r *run, p *Packet, now time.Time) {
	kept := max(s.sent.newest, p.FrameStart+r.offset-1, r.first+r.offset-1)
	if r.last+r.offset <= kept {
		return
	}
	r.last, r.surplus, s.next = kept-r.offset, 0, kept+1
	if s.open {
		s.Skip(now)
	}
}
