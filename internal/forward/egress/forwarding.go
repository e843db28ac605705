package egress

import (
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/fault"
	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/forward/trace"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/redundancy"
	"github.com/volsfu/volsfu/pkg/switching"
)

// tooOld reports whether the next packet begins a frame that exceeds MaxLag.
func (f *follower) tooOld() bool {
	w := f.writer
	p := f.next
	return p.Facts.Opens && f.track.Skippable() && int64(w.at)-p.Order > int64(w.set.cfg.MaxLag)
}

// write passes the packet to the slot's switcher and queues the packet if the switcher forwards it. write reports
// whether the packet was queued.
func (a *attachment) write(p *packetlog.Packet) bool {
	w := a.writer
	if !a.bound {
		if p.Facts.Opens && p.Class != packetlog.Audio {
			w.stats.counts[counters.DroppedUnbound]++
		}
		return false
	}
	s := a.slot
	if s.receiver.relay && p.Origin != s.selection.origin {
		return false
	}
	if fault.Injected && p.Facts.Framed && fault.LosesFrame(p.Facts.Frame) {
		if p.Facts.Opens && s.switcher.Active().Track == a.follower.track.ID() {
			// Later numbers have no gap, so that the receiver does not request the frame.
			s.switcher.Skip(w.now)
		}
		return false
	}
	if p.Facts.Opens && (s.stale(a.follower.track, p) || a.incomplete(p) || a.blocked(p)) {
		return false
	}
	if p.Facts.Opens {
		a.skipOmitted(p)
	}
	v := s.switcher.Packet(&p.Facts, w.now)
	if v.WantKey {
		a.follower.track.WantKeyFrame()
	}
	if v.Action != switching.Forward {
		if p.Facts.Framed && p.Facts.Opens && s.switcher.Active().Track == a.follower.track.ID() {
			s.yielded.add(p.Facts.Frame)
		}
		return false
	}
	if v.Switched || v.Unbegun > 0 {
		a.resumed(p, v)
	}
	if p.Facts.Opens {
		s.begunFrame = p.Facts.Frame
	}
	h := &s.header
	h.PayloadType, h.SequenceNumber, h.Timestamp, h.Marker = a.payloadType, v.Sequence, v.Timestamp, v.Marker
	body := w.wire.body(a.wireForm, p)
	s.receiver.number(h, len(body), p.Class)
	if routes := s.receiver.path.routes; routes.copying() {
		a.copyMedia(p, len(body), v.Marker)
	} else {
		routes.double(p.Class == packetlog.Audio)
	}
	w.outbox.writes++
	traced := p.Edge && s.receiver.traced()
	if traced {
		s.receiver.frames.Expect(p, len(w.receivers), w.at)
	}
	if err := s.outlet.Queue(h, body); err != nil {
		a.failed()
		return false
	}
	if traced {
		a.trace(p, v.Sequence, v.Marker)
	}
	s.receiver.queued(len(body))
	s.count(p, v.Timestamp)
	return true
}

// copyMedia decides whether the packet that is queued next is copied: a packet of a track with that number of payload
// bytes, which ends its frame in the slot if ends is set.
func (a *attachment) copyMedia(p *packetlog.Packet, payload int, ends bool) {
	s := a.slot
	c := s.receiver.path.routes.copies
	class := redundancy.Other
	switch {
	case p.Class == packetlog.Audio:
		class = redundancy.Audio
	case p.Class == packetlog.Media && a.follower.track.Quality() == 0 && !s.unseen.Load():
		class = redundancy.Lowest
	}
	c.decide(&redundancy.Packet{
		SSRC: s.header.SSRC, Sequence: s.header.SequenceNumber, Size: congestion.PacketOverhead + payload, Class: class,
		Begins: p.Facts.Opens, Ends: ends,
	}, &s.copied, s.receiver.writer.now)
}

// stale reports whether a frame precedes a pause of the track that the slot waits for. Such a frame neither proves
// that the track is live nor may start the slot.
func (s *Slot) stale(t *track.Track, p *packetlog.Packet) bool {
	return s.waiting && s.selection.track == t && p.Order < t.Expected()
}

// count adds a queued packet to the counters of the slot and the writer.
func (s *Slot) count(p *packetlog.Packet, timestamp uint32) {
	w := s.receiver.writer
	size := uint64(len(p.Payload))
	s.reporter.Count(len(p.Payload))
	s.sent.packets++
	s.sent.octets += size
	if p.Class != packetlog.Audio && (!s.begun || int32(timestamp-s.newest) > 0) {
		s.begun, s.newest = true, timestamp
		s.sent.frames++
		w.stats.counts[counters.FramesForwarded]++
	}
	w.stats.counts[counters.SentPackets+counters.Counter(p.Class)]++
	w.stats.counts[counters.SentBytes+counters.Counter(p.Class)] += size
	s.receiver.repairs.earn()
	s.touch()
}

// touch schedules the publication of the slot's counters for the next housekeeping.
func (s *Slot) touch() {
	w := s.receiver.writer
	if !s.touched {
		s.touched = true
		w.touched = append(w.touched, s)
	}
}

// failed counts a packet that the outlet refused. If the outlet has lost its negotiated stream, the slot pauses until a
// stream is negotiated again.
func (a *attachment) failed() {
	w := a.writer
	w.stats.counts[counters.WriteErrors]++
	s := a.slot
	if s.outlet.SSRC() != 0 {
		return
	}
	for _, other := range s.attachments {
		other.bound = false
	}
	s.switcher.Overrun(w.now)
	s.unsettle()
}

// skip continues at the newest frame of the track, because the next frame exceeds MaxLag. skip returns false if the
// next frame is the newest.
func (f *follower) skip() bool {
	newest := f.track.Log().At(f.track.Opened())
	if newest == nil {
		return false
	}
	if newest.Position <= f.position {
		newest.Release()
		return false
	}
	dropped := int(newest.Ordinal - f.next.Ordinal)
	f.drop()
	f.next, f.position, f.turn = newest, newest.Position, f.turnOf(newest)
	for _, a := range f.attachments {
		if s := a.slot; s.switcher.Active().Track == f.track.ID() {
			if newest.Facts.Framed {
				s.unbegun, s.settled = s.unbegun+dropped, newest.Facts.Frame-1
			}
			if a.skipping, a.resumes = true, newest.Ordinal; s.held.Len() == 0 {
				a.skipped()
			}
			s.dropped(f.track, dropped, counters.DroppedLate)
		}
	}
	return true
}

// overrun informs the slots that the track feeds that packets were lost, which affected that number of frames. The
// waiting packets of the track are lost with them.
func (f *follower) overrun(frames int) {
	for _, a := range f.attachments {
		waited := a.clear()
		if waited > 0 && !f.last.ends {
			// The last of the waiting frames is already among the affected frames.
			waited--
		}
		a.cut(frames+waited, counters.DroppedOverrun)
	}
}

// dropped counts frames that a slot does not receive completely.
func (s *Slot) dropped(t *track.Track, frames int, reason counters.Counter) {
	w := s.receiver.writer
	w.stats.counts[reason] += uint64(frames)
	s.receiver.events.add(Event{Slot: s, Track: t, DroppedFrames: frames, Dropped: dropReasons[reason]})
}

// resumed is called for a packet that begins a frame after frames that have not begun, or the first frame after a
// switch or a pause. resumed informs the receiver of frames whose outcome the receiver does not know: frames that
// arrived while the slot was off, frames of the new track that were dropped before, and frames that the active track
// has left to a pending track that did not begin.
func (a *attachment) resumed(p *packetlog.Packet, v switching.Verdict) {
	s := a.slot
	if group := s.switcher.Active().Group; group != s.begunGroup {
		// The counted frames belong to another publication.
		s.begunGroup, s.unbegun, s.overreported, s.yielded = group, 0, 0, frameRun{}
	}
	var off FrameRange
	unreported := v.Unbegun - s.unbegun
	switch {
	case unreported < 0:
		// The track has begun frames that were reported as dropped on another track. The same number of later drops is
		// not reported.
		s.overreported -= unreported
	case unreported == 0:
	case s.off:
		off = FrameRange{First: uint32(p.Facts.Frame - int64(unreported)), Count: uint32(unreported)}
	case v.Switched:
		// The frames that the former track has left to this one may still arrive, and have numbers.
		if n := a.refused.within(unreported, p.Facts.Frame); n > 0 {
			s.dropped(a.follower.track, n, a.reason)
		}
	default:
		if n := min(s.yielded.within(v.Unbegun, p.Facts.Frame), unreported); n > 0 {
			s.dropped(a.follower.track, n, counters.DroppedIncomplete)
		}
	}
	s.off, s.unbegun, s.settled = false, 0, p.Facts.Frame-1
	if v.Switched {
		a.switched(off)
	}
}

// switched records that a track begins to feed the slot, or feeds the slot again after a pause of some frames.
func (a *attachment) switched(off FrameRange) {
	w := a.writer
	s := a.slot
	a.fed = true
	w.read()
	if c := s.receiver.path.reception.Load(); c != nil {
		c.fed(s.header.SSRC, w.at)
	}
	var delay time.Duration
	if s.waiting && s.selection.track == a.follower.track {
		s.waiting = false
		delay = max(w.now.Sub(s.selection.requested), 0)
		w.stats.switchDelay.Observe(delay, 1)
	}
	w.stats.counts[counters.Switches]++
	s.receiver.events.add(Event{Slot: s, Track: a.follower.track, Switched: true, Delay: delay, OffFrames: off})
	if s.switcher.Active().Group != s.reportedGroup {
		s.reportWanted = true
		s.receiver.reportSoon()
	}
	s.unsettle()
}

// Packets of a frame that cannot be completed are not sent. For a frame that has begun to leave on a slot there are two
// cases.
//
// Packets lost on the publisher's link are given up when a request is too late (feedback.NACKGenerator). A frame of
// payload v1 is then judged for each slot by the packets planned for the slot. The frame ends if it lacks more packets
// than the parity that the receiver is sent can replace, block by block. Further parity from the publisher does not
// count, because no slot sends it. Giving up is the server's decision: a packet may still arrive, and a receiver's
// deadline may be longer than the deadline of the decision. By then the server has requested the packet for as long as
// it does for any receiver.
//
// Packets that wait in a slow pacer may be too late. If every frame of the track decodes independently, the waiting
// packets are dropped when the time since the frame began exceeds the receiver's deadline.

// endIncomplete ends frames with too many lost packets on all slots of a track.
func (f *follower) endIncomplete() {
	w := f.writer
	gaps := f.track.Losses().Gaps()
	if f.gone || gaps == nil {
		return
	}
	for _, gap := range gaps.Frames {
		if gap.Change <= f.gaps {
			continue
		}
		for _, a := range f.attachments {
			if _, last, begun := a.slot.switcher.Planned(&gap.Facts); begun && !gap.Completes(last, &w.lost) {
				a.end(&gap.Facts, gap.Facts.Frame, counters.DroppedIncomplete)
			}
		}
	}
	f.gaps = gaps.Change
}

// incomplete reports whether a packet begins a frame on a slot that lacks too many packets, and drops such a frame.
func (a *attachment) incomplete(p *packetlog.Packet) bool {
	w := a.writer
	gap := a.follower.track.Losses().Gaps().Find(p.Facts.Frame)
	if gap == nil {
		return false
	}
	s := a.slot
	if _, last, begun := s.switcher.Planned(&p.Facts); begun || gap.Completes(last, &w.lost) {
		return false
	}
	a.refuse(p, counters.DroppedIncomplete)
	return true
}

// blocked reports whether a packet begins a frame that this host cannot send, and drops such a frame.
func (a *attachment) blocked(p *packetlog.Packet) bool {
	w := a.writer
	if !a.follower.track.Skippable() || a.begun(p) || !a.slot.receiver.path.peer.Blocked(w.now) {
		return false
	}
	a.refuse(p, counters.DroppedBlocked)
	return true
}

// refuse drops the frame that a packet begins. If the track is only pending, the dropped frames are reported when one
// of its frames begins.
func (a *attachment) refuse(p *packetlog.Packet, reason counters.Counter) {
	a.dropping, a.dropped = true, p.Frame()
	if a.slot.switcher.Active().Track == a.follower.track.ID() {
		a.leaveOut(p, reason)
	} else {
		a.noteRefused(p, reason)
		a.omitted.add(p.Facts.Frame)
	}
}

// skipOmitted makes the numbers of a pending track begin with the frame that a packet begins, if the slot has dropped
// all frames of the track since the last frame that began. Otherwise the switcher reserves numbers for these frames,
// whose packets may arrive late, and the receiver requests them.
func (a *attachment) skipOmitted(p *packetlog.Packet) {
	s, frames := a.slot, &a.omitted
	if !p.Facts.Framed || frames.first == frames.end || frames.end != p.Facts.Frame ||
		frames.first > s.begunFrame+1 {
		return
	}
	if pending, waits := s.switcher.Pending(); waits && pending.Track == a.follower.track.ID() {
		// A new selection forgets the frames that the switcher has seen.
		s.switcher.Select(s.switcher.Active(), a.writer.now)
		s.switcher.Select(pending, a.writer.now)
	}
}

// abandon reports whether the rest of a frame that has begun to leave is dropped, and the reason: the rest would arrive
// after the receiver's deadline, or this host cannot send it.
func (a *attachment) abandon(p *packetlog.Packet) (reason counters.Counter, abandoned bool) {
	w := a.writer
	switch {
	case p.Facts.Opens || p.Frame() != a.leaving || !a.follower.track.Skippable():
		return 0, false
	case a.expired():
		return counters.DroppedExpired, true
	}
	return counters.DroppedBlocked, a.slot.receiver.path.peer.Blocked(w.now)
}

// expired reports whether packets of the frame that has begun to leave arrive after the receiver's deadline. The
// deadline counts from the arrival of the frame's first packet. If the first packet met a queue that has emptied since,
// later packets may be later by the delay that packets have had recently.
func (a *attachment) expired() bool {
	w := a.writer
	r, age := a.slot.receiver, w.at-a.left
	if age <= r.path.repairTime(0, 0) {
		// No deadline is shorter.
		return false
	}
	rtt, late := r.path.trip()
	return age > r.path.repairTime(rtt, late)+late
}

// end ends a frame that has begun to leave on a slot, and releases the waiting packets of the frame.
func (a *attachment) end(p *switching.Packet, frame int64, reason counters.Counter) {
	w := a.writer
	s := a.slot
	a.clearFrame(frame)
	if s.switcher.End(p, w.now) {
		w.stats.counts[reason]++
		s.receiver.events.add(Event{Slot: s, Track: a.follower.track, EndedFrames: 1, Dropped: dropReasons[reason]})
	}
}

// clearFrame releases the packets of one frame of a track that wait for a slot.
func (a *attachment) clearFrame(frame int64) {
	w := a.writer
	s := a.slot
	if s.receiver.path.sender.Filter(&s.held, func(h heldPacket) bool {
		if h.attachment != a || h.packet.Frame() != frame {
			return true
		}
		h.packet.Release()
		return false
	}) {
		w.reschedule(s.receiver)
	}
}

// traced reports whether the receiver's frames are traced.
func (r *Receiver) traced() bool { return r.writer.set.cfg.FrameTimes || r.frames.Wanted() }

// trace records a packet at the edge of a frame that was queued on a slot.
func (a *attachment) trace(p *packetlog.Packet, sequence uint16, marker bool) {
	w := a.writer
	s := a.slot
	s.frames.Note(&s.receiver.frames, &w.stats.frames, &trace.Passage[*Slot, *track.Track]{
		Slot: s, Track: a.follower.track, Packet: p, SSRC: s.header.SSRC, Sequence: sequence, Marker: marker, At: w.at,
	})
}
