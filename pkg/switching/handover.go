package switching

import "time"

// handover is what is known about the source that was selected and has not begun.
type handover struct {
	pending bool
	source  Source
	// opened counts the frames that the pending track opened too late to be begun.
	opened int
	// alive says that it sends, so that the active track may leave the next frame to it.
	alive bool
	// waiting is when a frame of the pending track could first not be begun; the end of a foreign frame is waited for from then on.
	waiting time.Time
	// yielding is when the active track was first kept from beginning a frame, or the pending one last showed itself since.
	yielding time.Time
	// frame is the newest frame that the pending track opened too late, and end the input number after it.
	framed     bool
	frame, end int64
}

// missed notes a frame of the pending track that cannot be begun: the active track has begun it, or is in the middle of a foreign frame.
func (s *Switcher) missed(p *Packet, now time.Time) {
	h := &s.handover
	h.opened++
	if p.Framed {
		_, last := p.extent()
		h.framed, h.frame, h.end = true, p.Frame, last+1
	}
	// A caller may have offered an old frame from its cache, from before the track was paused: a frame proves life
	// if it is recent, or not the only one.
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

// owed is where the run of the pending track begins whose first frame to arrive begins at first, while newest is the newest frame that the slot
// has begun. If the track's own frame of that number has been seen, then all that follows it is newer, and owed to the receiver, even if
// whole frames of it have not come yet.
func (h *handover) owed(first, newest int64) int64 {
	if h.framed && h.frame == newest && h.end < first && first-h.end <= maxJump {
		return h.end
	}
	return first
}

// gives says whether the active track, with a packet beyond what it has reserved, must leave the slot to what is pending.
func (s *Switcher) mustYield(p *Packet, now time.Time) bool {
	if p.Framed || s.ended || p.Opens {
		return s.yields(now)
	}
	return !s.handover.waiting.IsZero() && s.overdue(now)
}

// yields says whether the active track may begin no further frame, because the pending one is expected to. If that one goes
// silent the active track takes the slot back.
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

// overdue says whether the foreign frame under way has had its time: since a switch first waited for it, or since its latest packet.
func (s *Switcher) overdue(now time.Time) bool {
	w := s.handover.waiting
	return !w.IsZero() && now.Sub(w) > s.cutAfter || now.Sub(s.heard) > s.cutAfter
}
