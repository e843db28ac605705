package egress

import (
	"time"

	"github.com/volsfu/volsfu/internal/fault"
	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/pkg/switching"
)

// waited tells whether the packet at hand begins a frame that has waited for too long.
func (w *writer) waited(f *follower) bool {
	p := f.next
	return p.Facts.Opens && f.track.Skippable() && w.set.clock.Since(w.now)-p.Order > int64(w.set.cfg.MaxLag)
}

// write asks a slot's switcher what becomes of the packet, and queues it. It tells whether the packet was queued.
func (w *writer) write(a *attachment, p *packetlog.Packet) bool {
	if !a.bound {
		if p.Facts.Opens && p.Class != packetlog.Audio {
			w.stats.counts[counters.DroppedUnbound]++
		}
		return false
	}
	s := a.slot
	if fault.Injected && p.Facts.Framed && fault.LosesFrame(p.Facts.Frame) {
		if p.Facts.Opens && s.switcher.Active().Track == a.follower.track.ID() {
			// The numbers of what follows have no gap, or the receiver would ask for the frame.
			s.switcher.Skip(w.now)
		}
		return false
	}
	if p.Facts.Opens && (s.outlived(a.follower.track, p) || w.futile(a, p) || w.blocked(a, p)) {
		return false
	}
	v := s.switcher.Packet(&p.Facts, w.now)
	if v.WantKey {
		a.follower.track.WantKeyFrame()
	}
	if v.Action != switching.Forward {
		return false
	}
	if v.Switched || v.Unbegun > 0 {
		w.resumed(a, p, v)
	}
	h := &s.header
	h.PayloadType, h.SequenceNumber, h.Timestamp, h.Marker = a.payloadType, v.Sequence, v.Timestamp, v.Marker
	body := w.body(a.wireForm, p)
	s.receiver.number(h, len(body), p.Class, w.now)
	w.writes++
	traced := p.Edge && s.receiver.traced()
	if traced {
		s.receiver.frames.Expect(p, len(w.receivers), w.at)
	}
	if err := s.outlet.Queue(h, body); err != nil {
		w.failed(a)
		return false
	}
	if traced {
		w.trace(a, p, v.Sequence, v.Marker)
	}
	w.queued(s.receiver, len(body))
	w.count(s, p, v.Timestamp)
	return true
}

// outlived tells whether a frame is from before a pause of the track that the slot waits for: it is no sign that the track goes on, and nothing to begin with.
func (s *Slot) outlived(t *track.Track, p *packetlog.Packet) bool {
	return s.waiting && s.selection.track == t && p.Order < t.Expected()
}

// count adds a packet that was queued to what the slot and the writer have sent.
func (w *writer) count(s *Slot, p *packetlog.Packet, timestamp uint32) {
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
	s.receiver.earn()
	w.touch(s)
}

// touch has the slot's counts published at the next housekeeping.
func (w *writer) touch(s *Slot) {
	if !s.touched {
		s.touched = true
		w.touched = append(w.touched, s)
	}
}

// failed counts a packet that the outlet did not take. Where the reason is that the outlet has lost its negotiated stream, the slot pauses until it
// has one again.
func (w *writer) failed(a *attachment) {
	w.stats.counts[counters.WriteErrors]++
	s := a.slot
	if s.outlet.SSRC() != 0 {
		return
	}
	for _, other := range s.attachments {
		other.bound = false
	}
	s.switcher.Overrun(w.now)
	w.unsettle(s)
}

// skip goes on at the newest frame of the track, because the one that is about to begin waited too long. It returns false if that is the newest.
func (w *writer) skip(f *follower) bool {
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
				w.skipped(a)
			}
			w.dropped(s, f.track, dropped, counters.DroppedLate)
		}
	}
	return true
}

// overrun tells the slots that the track is feeding that packets of it are lost to them, which hurt so many frames. What waits to leave is lost with them.
func (w *writer) overrun(f *follower, frames int) {
	for _, a := range f.attachments {
		waited := w.clear(a)
		if waited > 0 && !f.last.ends {
			// The last of them is among those that were hurt.
			waited--
		}
		w.cut(a, frames+waited, counters.DroppedOverrun)
	}
}

// dropped counts frames that a slot does not get whole.
func (w *writer) dropped(s *Slot, t *track.Track, frames int, reason counters.Counter) {
	w.stats.counts[reason] += uint64(frames)
	s.receiver.events.add(Event{Slot: s, Track: t, DroppedFrames: frames, Dropped: dropReasons[reason]})
}

// resumed notes that a packet begins a frame behind others that have not begun, or the first after a switch or a pause. The receiver is told what it does not know of the others: which came
// while the slot was off, or which were to come from the track that begins, had that not had them too late.
func (w *writer) resumed(a *attachment, p *packetlog.Packet, v switching.Verdict) {
	s := a.slot
	var off FrameRange
	untold := v.Unbegun - s.unbegun
	switch {
	case untold < 0:
		// The track has begun frames that another was told to have dropped. As many are not told later.
		s.overtold -= untold
	case untold == 0:
	case s.off:
		off = FrameRange{First: uint32(p.Facts.Frame - int64(untold)), Count: uint32(untold)}
	default:
		if n := a.overdue.within(untold, p.Facts.Frame); n > 0 {
			w.dropped(s, a.follower.track, n, counters.DroppedBudget)
		}
	}
	s.off, s.unbegun, s.settled = false, 0, p.Facts.Frame-1
	if v.Switched {
		w.switched(a, off)
	}
}

// switched notes that a track begins to feed the slot, or feeds it again after a pause for some frames.
func (w *writer) switched(a *attachment, off FrameRange) {
	s := a.slot
	a.fed = true
	w.readClock()
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
		w.reportSoon(s.receiver)
	}
	w.unsettle(s)
}
