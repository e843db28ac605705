package egress

import (
	"container/heap"
	"math"
	"slices"
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/pkg/switching"
)

// apply passes a new selection to the slot's switcher and follows the selected track.
func (s *Slot) apply(sel selection) {
	w := s.receiver.writer
	w.addReceiver(s.receiver)
	s.selection = sel
	s.protect()
	var source switching.Source
	if sel.track != nil {
		source = switching.Source{Track: sel.track.ID(), Group: sel.group, NeedsKey: sel.track.NeedsKey()}
		s.attach(sel.track)
	}
	s.switcher.Select(source, w.now)
	s.off = s.off || s.switcher.Active().Track == 0
	if sel.track != nil && s.switcher.Active() == source {
		// A pending switch or pause is cancelled. The event informs the receivers of its announcement.
		s.receiver.events.add(Event{Slot: s, Track: sel.track, Switched: true})
	}
	s.review()
	_, pending := s.switcher.Pending()
	s.waiting = pending && sel.track != nil
	switch {
	case !s.waiting:
	case sel.track.NeedsKey():
		if s.receiver.relay && sel.track.Taken() >= 0 {
			// The cache may have the key frame with which the publisher's next connection began, or a later one.
			s.catchUp(sel.track)
			_, s.waiting = s.switcher.Pending()
		}
		if s.waiting {
			sel.track.WantKeyFrame()
		}
	default:
		s.catchUp(sel.track)
	}
}

// catchUp offers the slot the part of a pending track's newest frame that the writer has passed already, unless the
// frame overtakes frames of the active track. The slot then begins with that frame instead of waiting for the next, or
// at least its switcher learns that the track is live. Within a second after the publisher has moved, a relay begins
// with the first frame since the move, which the other server has not received from the publisher's former server.
func (s *Slot) catchUp(t *track.Track) {
	w := s.receiver.writer
	a := s.attachment(t)
	if a == nil {
		return
	}
	position, lag := t.Opened(), int64(w.set.cfg.MaxLag)
	if taken := t.Taken(); s.receiver.relay && taken >= t.Log().Tail() && taken < position {
		// The log, which still has the packet, bounds the age of packets.
		position, lag = taken, math.MaxInt64
	}
	for ; position < a.follower.position; position++ {
		p := t.Log().At(position)
		if p == nil {
			return
		}
		if int64(w.at)-p.Order > lag || p.Facts.Opens && s.overtakes(p) {
			p.Release()
			return
		}
		a.offer(p)
		p.Release()
	}
}

// overtakes reports whether a packet of the selected track belongs to a later frame than the next packet of the active
// track, on tracks that share frame numbers. The writer handles selections before packets. If the slot began with the
// later frame, it would not carry the frames of the active track that arrived before.
func (s *Slot) overtakes(p *packetlog.Packet) bool {
	active := s.switcher.Active()
	if !p.Facts.Framed || active.Group != s.selection.group || active.Track == p.Facts.Track {
		return false
	}
	for _, a := range s.attachments {
		if a.follower.track.ID() == active.Track {
			frame, known := a.follower.nextFrame()
			return known && frame < p.Facts.Frame
		}
	}
	return false
}

// addReceiver adds a receiver to the writer's list.
func (w *writer) addReceiver(r *Receiver) {
	if !r.listed {
		r.listed = true
		r.reportDue = w.now.Add(w.set.cfg.ReportInterval)
		r.path.departed.begin(w.at)
		w.receivers = append(w.receivers, r)
	}
}

// attach delivers packets of the track to the slot from now on. A closed track has no packets.
func (s *Slot) attach(t *track.Track) {
	w := s.receiver.writer
	if s.attachment(t) != nil {
		return
	}
	f := w.followers[t]
	if f == nil {
		f = &follower{writer: w, track: t, cursor: -1, readyIndex: -1}
		position, ok := t.Join(f)
		if !ok {
			return
		}
		f.position = position
		w.followers[t] = f
	}
	a := &attachment{writer: w, slot: s, follower: f, newest: math.MinInt64, reached: math.MinInt64,
		leaving: math.MinInt64}
	s.attachments = append(s.attachments, a)
	f.insert(a)
}

// bind determines how the outlet's peer receives the track's codec. bind reports whether the codec is negotiated.
func (a *attachment) bind() bool {
	s := a.slot
	ssrc := s.outlet.SSRC()
	if ssrc == 0 {
		return false
	}
	if s.reporter == nil || s.header.SSRC != ssrc {
		s.header.SSRC, s.reporter = ssrc, feedback.NewSenderReporter(ssrc, s.clockRate())
	}
	a.wireForm, a.bound = s.form(a.follower.track)
	if a.vp8Wrapped {
		s.receiver.endParity()
	}
	return a.bound
}

// review updates a slot's attachments to the state of its switcher. A track that is neither active nor pending is
// detached after LateWindow if it has fed the slot, otherwise at once. While an attachment has to wait, the slot is
// reviewed again.
func (s *Slot) review() {
	w := s.receiver.writer
	if s.receiver.closed.Load() {
		return
	}
	active := s.switcher.Active().Track
	pending, _ := s.switcher.Pending()
	settled := active == 0 || s.selection.track != nil
	for i := len(s.attachments) - 1; i >= 0; i-- {
		a := s.attachments[i]
		id := a.follower.track.ID()
		switch {
		case id == active || id == pending.Track:
			a.until = time.Time{}
			if !a.bound && !a.bind() {
				settled = false
			}
		case !a.fed, !a.until.IsZero() && !w.now.Before(a.until):
			a.detach()
		case a.until.IsZero():
			a.until = w.now.Add(w.set.cfg.LateWindow)
			settled = false
		default:
			settled = false
		}
	}
	if !settled {
		s.unsettle()
	}
}

// unsettle schedules a review of the slot for the next housekeeping.
func (s *Slot) unsettle() {
	w := s.receiver.writer
	if !s.unsettled {
		s.unsettled = true
		w.unsettled = append(w.unsettled, s)
	}
}

// detach ends an attachment. If no other slot takes the track, the writer stops following the track.
func (a *attachment) detach() {
	a.clear()
	a.slot.attachments = without(a.slot.attachments, a)
	f := a.follower
	i := slices.Index(f.attachments, a)
	f.attachments = slices.Delete(f.attachments, i, i+1)
	if len(f.attachments) == 0 {
		f.forget()
	}
}

// close detaches all slots from a closed track and stops following the track.
func (f *follower) close() {
	if f.gone {
		return
	}
	for _, a := range f.attachments {
		a.clear()
		a.slot.attachments = without(a.slot.attachments, a)
	}
	f.attachments = nil
	f.forget()
}

// forget stops following the track.
func (f *follower) forget() {
	w := f.writer
	f.gone = true
	f.drop()
	if f.readyIndex >= 0 {
		heap.Remove(&w.ready, f.readyIndex)
	}
	delete(w.followers, f.track)
	f.track.Part(f)
}

// removeReceiver removes a closed receiver.
func (w *writer) removeReceiver(r *Receiver) {
	for _, s := range r.slots.all() {
		for len(s.attachments) > 0 {
			s.attachments[0].detach()
		}
		s.selection = selection{}
	}
	r.path.sender.Stop(w.now)
	r.path.sender.ClearRepairs()
	w.reschedule(r)
	if i := slices.Index(w.receivers, r); i >= 0 {
		w.receivers = slices.Delete(w.receivers, i, i+1)
	}
}

// without removes an attachment from an unordered list.
func without(list []*attachment, a *attachment) []*attachment {
	i, last := slices.Index(list, a), len(list)-1
	list[i], list[last] = list[last], nil
	return list[:last]
}
