package client

import "time"

// pacer spreads the packets of frames over time. It is stepped with now and belongs to the session's sending goroutine.
type pacer struct {
	frames []pacedFrame
}

// pacedFrame is one frame under way: its packets leave evenly from begin on, the last at begin + spread.
type pacedFrame struct {
	packets []outgoing
	sent    int
	begin   time.Time
	spread  time.Duration
}

// add takes a frame. An earlier frame of the same line that is still under way leaves at once, so that a line's packets keep their order.
func (p *pacer) add(packets []outgoing, begin time.Time, spread time.Duration) {
	for i := range p.frames {
		if p.frames[i].packets[0].line == packets[0].line {
			p.frames[i].begin, p.frames[i].spread = begin, 0
		}
	}
	p.frames = append(p.frames, pacedFrame{packets: packets, begin: begin, spread: spread})
}

// due appends the packets that are to leave by now, oldest frame first.
func (p *pacer) due(now time.Time, packets []outgoing) []outgoing {
	kept := p.frames[:0]
	for _, f := range p.frames {
		upTo := f.dueBy(now)
		packets = append(packets, f.packets[f.sent:upTo]...)
		f.sent = upTo
		if f.sent < len(f.packets) {
			kept = append(kept, f)
		}
	}
	clear(p.frames[len(kept):])
	p.frames = kept
	return packets
}

// dueBy is how many packets of the frame are to leave by now; the first leaves at its begin.
func (f *pacedFrame) dueBy(now time.Time) int {
	elapsed := now.Sub(f.begin)
	switch {
	case elapsed < 0:
		return f.sent
	case elapsed >= f.spread:
		return len(f.packets)
	}
	n := 1 + int(float64(len(f.packets)-1)*float64(elapsed)/float64(f.spread))
	return max(n, f.sent)
}

// idle tells that nothing waits.
func (p *pacer) idle() bool { return len(p.frames) == 0 }
