package egress

import (
	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/pkg/switching"
)

// Nothing is sent of a frame that cannot be completed. For those that have begun to leave on a slot this shows in two ways.
//
// Packets that the publisher's link lost are given up when it is too late to ask for them (feedback.NACKGenerator). A frame of payload v1 is then judged for each slot by what was planned for it
// there: it ends once what will not come is more than the parity makes up for that the receiver is sent, block by block. What the publisher makes beyond that does not count,
// since no slot sends it. Given up is the server's word: a packet may come after all, and so may a receiver's deadline be longer than the one it was given up by. But by then the frame has been
// asked for as long as the server does for anybody.
//
// What waits in a pacer that has become slow may be late, too. Of a frame of which every one decodes by itself, what waits is dropped when the frame has begun longer ago than its receiver
// goes on completing it.

// endIncomplete ends, on all slots of a track, frames of which too many packets will not come.
func (w *writer) endIncomplete(f *follower) {
	gaps := f.track.Gaps()
	if f.gone || gaps == nil {
		return
	}
	for _, gap := range gaps.Frames {
		if gap.Change <= f.gaps {
			continue
		}
		for _, a := range f.attachments {
			if _, last, begun := a.slot.switcher.Planned(&gap.Facts); begun && !gap.Completes(last, &w.lost) {
				w.end(a, &gap.Facts, gap.Facts.Frame, counters.DroppedIncomplete)
			}
		}
	}
	f.gaps = gaps.Change
}

// futile tells whether a packet begins a frame on a slot of which too many packets will not come, and leaves the frame out then.
func (w *writer) futile(a *attachment, p *packetlog.Packet) bool {
	gap := a.follower.track.Gaps().Find(p.Facts.Frame)
	if gap == nil {
		return false
	}
	s := a.slot
	if _, last, begun := s.switcher.Planned(&p.Facts); begun || gap.Completes(last, &w.lost) {
		return false
	}
	w.refuse(a, p, counters.DroppedIncomplete)
	return true
}

// blocked reports whether a packet begins a frame of which nothing would leave the host, and leaves the frame out if so.
func (w *writer) blocked(a *attachment, p *packetlog.Packet) bool {
	if !a.follower.track.Skippable() || a.begun(p) || !a.slot.receiver.peer.Blocked(w.now) {
		return false
	}
	w.refuse(a, p, counters.DroppedBlocked)
	return true
}

// refuse leaves out the frame that a packet begins. Which frames a track that is only to feed the slot should have begun
// shows when one begins.
func (w *writer) refuse(a *attachment, p *packetlog.Packet, reason counters.Counter) {
	a.dropping, a.dropped = true, p.Frame()
	if a.slot.switcher.Active().Track == a.follower.track.ID() {
		w.leaveOut(a, p, reason)
	} else {
		a.overdueAt(p)
	}
}

// abandon reports whether the rest of a frame that has begun to leave is to be dropped, and the reason: the rest arrives
// after the receiver's deadline, or would be lost on this host.
func (w *writer) abandon(a *attachment, p *packetlog.Packet) (reason counters.Counter, abandoned bool) {
	switch {
	case p.Facts.Opens || p.Frame() != a.leaving || !a.follower.track.Skippable():
		return 0, false
	case w.expired(a):
		return counters.DroppedExpired, true
	}
	return counters.DroppedBlocked, a.slot.receiver.peer.Blocked(w.now)
}

// expired reports whether packets of the frame that has begun to leave arrive after the receiver's deadline. The deadline
// counts from the arrival of the frame's first packet. If the first packet met a queue that has emptied since, later
// packets may be later by the delay that packets have had recently.
func (w *writer) expired(a *attachment) bool {
	r, age := a.slot.receiver, w.at-a.left
	if age <= w.deadline(r, 0, 0) {
		// No deadline is shorter.
		return false
	}
	rtt, late := r.trip()
	return age > w.deadline(r, rtt, late)+late
}

// end ends a frame that has begun to leave on a slot, and lets go of what waits of it.
func (w *writer) end(a *attachment, p *switching.Packet, frame int64, reason counters.Counter) {
	s := a.slot
	w.clearFrame(a, frame)
	if s.switcher.End(p, w.now) {
		w.stats.counts[reason]++
		s.receiver.events.add(Event{Slot: s, Track: a.follower.track, EndedFrames: 1, Dropped: dropReasons[reason]})
	}
}

// clearFrame lets go of what waits of one frame of a track for a slot.
func (w *writer) clearFrame(a *attachment, frame int64) {
	s := a.slot
	if s.receiver.sender.Filter(&s.held, func(h heldPacket) bool {
		if h.attachment != a || h.packet.Frame() != frame {
			return true
		}
		h.packet.Release()
		return false
	}) {
		w.reschedule(s.receiver)
	}
}
