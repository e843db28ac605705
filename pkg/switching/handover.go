package switching

import "time"

// handover is the state of a selected source that has not begun.
type handover struct {
	pending bool
	source  Source
	// opened counts the frames that the pending track opened too late to begin.
	opened int
	// alive reports that the pending track is sending, so that the active track may leave the next
	// frame to it.
	alive bool
	// waiting is the time at which a frame of the pending track first could not begin. The wait for
	// the end of a foreign frame is measured from this time.
	waiting time.Time
	// yielding is the time at which the active track was first prevented from beginning a frame, or
	// of the last sign of life of the pending track since then.
	yielding time.Time
	// frame is the newest frame that the pending track opened too late. end is the input number
	// after this frame.
	framed     bool
	frame, end int64
}

// missed records a frame of the pending track that cannot begin, because the active track has begun
// the same frame or is within a foreign frame.
func (s *Switcher) missed(p *Packet, now time.Time) {
	h := &s.handover
	h.opened++
	if p.Framed {
		_, last := p.extent()
		h.framed, h.frame, h.end = true, p.Frame, last+1
	}
	// A caller may have passed an old frame from its cache, from before the track was paused. A
	// frame is a sign of life if it is recent or not the only one.
	lag := int32(s.time.newest - (p.Timestamp + s.time.offset))
	recent := h.source.Group != s.time.group || float64(lag) <= s.cutAfter.Seconds()*s.time.rate
	h.alive = h.alive || recent || h.opened > 1
	if !h.yielding.IsZero() {
		h.yielding = now
	}
	if h.waiting.IsZero() {
		h.waiting = now
	}
}

// owed returns the input number at which the run of the pending track begins. first is the start of
// the track's first frame to arrive, and newest is the newest frame that the slot has begun. If the
// track's own frame with number newest has been seen, all packets after this frame are newer and
// are reserved for the receiver, even if whole frames have not arrived yet.
func (h *handover) owed(first, newest int64) int64 {
	if h.framed && h.frame == newest && h.end < first && first-h.end <= maxJump {
		return h.end
	}
	return first
}

// mustYield reports whether the active track, with a packet beyond its reserved numbers, must leave
// the slot to the pending source.
func (s *Switcher) mustYield(p *Packet, now time.Time) bool {
	if p.Framed || s.ended || p.Opens {
		return s.yields(now)
	}
	return !s.handover.waiting.IsZero() && s.overdue(now)
}

// yields reports whether the active track must not begin another frame because the pending track is
// expected to. If the pending track falls silent, the active track takes the slot back.
func (s *Switcher) yields(now time.Time) bool {
	h := &s.handover
	if h.source.Track == 0 {
		return true
	}
	if !h.alive {
		return false
	}
	if h.yielding.IsZero() {
		h.yielding = now
	}
	if now.Sub(h.yielding) <= s.cutAfter {
		return true
	}
	h.alive, h.yielding = false, time.Time{}
	return false
}

// overdue reports whether the current foreign frame has used up its time: CutAfter since a switch
// first waited for the frame, or since its latest packet.
func (s *Switcher) overdue(now time.Time) bool {
	w := s.handover.waiting
	return !w.IsZero() && now.Sub(w) > s.cutAfter || now.Sub(s.latest) > s.cutAfter
}
