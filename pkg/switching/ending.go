package switching

import (
	"slices"
	"time"
)

// endedLimit is the number of ended frames kept, a power of two. At 90 frames per second, 23 frames
// are worth a retransmission within a deadline of 250 ms.
const endedLimit = 32

// endings is a ring of the latest ended frames.
type endings struct {
	frames [endedLimit]endedFrame
	count  int // number of all frames ever added; the newest is at count-1
}

type endedFrame struct {
	track TrackID
	// frame is the frame number of a framed packet, or the timestamp of a foreign packet.
	frame int64
}

// endedFrame returns the key of the packet's frame.
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

// Planned returns the range of input numbers of the packet's frame that are forwarded. If the frame
// has begun, the range contains the packets with numbers in the outgoing stream; otherwise it
// contains the packets that would have numbers if the frame began now.
func (s *Switcher) Planned(p *Packet) (first, last int64, begun bool) {
	first, last = p.planned(s.parity)
	r := s.history.carrying(p)
	if r == nil {
		return first, last, false
	}
	_, last = p.extent()
	return max(first, r.first), min(last, r.last), true
}

// End reports to the Switcher that the receiver can no longer complete the frame of packet p. The
// rest of the frame is not sent.
//
// If the frame is the newest that has begun, the numbers reserved for its rest are released, and
// its track continues with its next opening frame. The numbers of an older frame remain holes,
// because later numbers have been sent. A foreign frame is assumed to be the current frame and ends
// as with Overrun.
//
// End returns false if there is nothing to end: the frame has not begun, or was ended before, for
// example by Overrun.
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
		s.releaseRest(r, p, now)
	}
	return true
}

// Ended reports whether the frame of a packet is among the latest ended frames. A retransmission of
// the packet is then useless.
func (s *Switcher) Ended(p *Packet) bool { return s.endings.has(p) }

// releaseRest releases the numbers of the newest frame of run r above the highest number sent. r must
// be the newest run.
func (s *Switcher) releaseRest(r *run, p *Packet, now time.Time) {
	kept := max(s.sent.newest, p.FrameStart+r.offset-1, r.first+r.offset-1)
	if r.last+r.offset <= kept {
		return
	}
	r.last, r.surplus, s.next = kept-r.offset, 0, kept+1
	if s.open {
		s.Skip(now)
	}
}
