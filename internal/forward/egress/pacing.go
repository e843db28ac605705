package egress

import (
	"container/heap"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/forward/track"
)

// maxHeld bounds the packets that wait for one receiver, regardless of the budget: two frames of the maximum length,
// 14,665 packets each by default. They take 55 MB if the cache has removed all of them.
const maxHeld = 1 << 15

// heldPacket is a packet that waits for its departure time, with a reference. It has no sequence number yet: a switcher
// sees packets when they leave.
type heldPacket struct {
	attachment *attachment
	packet     *packetlog.Packet
}

// offer writes a packet to a slot, now or at its departure time. Audio is never held, nor are late packets of a frame
// that has begun to leave. offer reports whether the packet was queued on the outlet.
func (a *attachment) offer(p *packetlog.Packet) bool {
	w := a.writer
	s, r := a.slot, a.slot.receiver
	if !p.Facts.Framed {
		a.measure(p)
	}
	switch {
	case !w.set.paced || r.relay || a.follower.track.Audio() || !a.bound:
		return a.write(p)
	case p.Facts.Opens:
		a.opens(p)
	case a.drops(p):
		return false
	case p.Facts.Sequence < a.newest && a.begun(p):
		return a.write(p)
	}
	a.newest = max(a.newest, p.Facts.Sequence)
	offer := pacing.Offer{Arrived: time.Duration(p.Order), Due: p.Due, Begins: p.Facts.Opens}
	if offer.Begins {
		offer.Frame = a.frameSize(p)
		if budget, limited := a.budget(); limited {
			offer.Expires = offer.Arrived + budget + 1
		}
	}
	if r.path.sender.Admit(&s.held, offer, w.at) {
		return a.begin(p)
	}
	if r.path.sender.Held() == maxHeld {
		a.overflow(p)
		return false
	}
	p.Retain()
	if r.path.sender.Hold(&s.held, heldPacket{a, p}, offer) {
		w.reschedule(r)
	}
	return false
}

// opens resets the state of the attachment for a new frame of the track.
func (a *attachment) opens(p *packetlog.Packet) {
	a.newest, a.dropping = p.Facts.Sequence, false
	if a.skipping && a.slot.held.Len() == 0 {
		a.skipped()
	}
}

// skipped informs the slot's switcher that frames were dropped before the next packet of the track.
func (a *attachment) skipped() {
	w := a.writer
	a.skipping = false
	if s := a.slot; s.switcher.Active().Track == a.follower.track.ID() {
		s.switcher.Skip(w.now)
	}
}

// tick sends the due packets of a receiver, retransmissions first. The residence of a forwarded packet is the delay of
// the writer after the planned time; the time before was intended.
func (w *writer) tick(r *Receiver) {
	now := w.at
	planned, _ := r.path.sender.Next()
	planned = min(planned, now)
	r.path.sender.Tick(now)
	r.repeatHeld()
	for {
		h, ok := r.path.sender.Pop(now)
		if !ok {
			break
		}
		if h.attachment.release(h.packet) {
			w.outbox.arrived = append(w.outbox.arrived, int64(planned))
			w.stats.pacerHold.Observe(planned-time.Duration(h.packet.Order), 1)
		}
		h.packet.Release()
	}
	r.pad()
	w.reschedule(r)
	w.outbox.depart(&r.run)
	if w.ticking() == nil {
		w.outbox.dispatch()
	}
}

// release writes a packet that has waited, unless its frame is dropped because of its age. release reports whether the
// packet was queued.
func (a *attachment) release(p *packetlog.Packet) bool {
	if a.skipping && p.Ordinal >= a.resumes {
		a.skipped()
	}
	if p.Facts.Opens && !a.begun(p) && a.overBudget(p) {
		a.refuse(p, counters.DroppedBudget)
	}
	if a.drops(p) {
		return false
	}
	if reason, abandoned := a.abandon(p); abandoned {
		a.dropping, a.dropped = true, p.Frame()
		a.end(&p.Facts, p.Frame(), reason)
		return false
	}
	return a.begin(p)
}

// leaveOut drops the frame that begins with a packet of the active track.
func (a *attachment) leaveOut(p *packetlog.Packet, reason counters.Counter) {
	w := a.writer
	s := a.slot
	s.switcher.Skip(w.now)
	if p.Facts.Framed {
		s.unbegun++
		s.settled = p.Facts.Frame
		for _, other := range s.attachments {
			other.refused.less(p.Facts.Frame)
		}
	}
	if s.overreported > 0 {
		s.overreported--
	} else {
		s.dropped(a.follower.track, 1, reason)
	}
}

// overBudget reports whether a frame that has not begun exceeds its budget.
func (a *attachment) overBudget(p *packetlog.Packet) bool {
	budget, limited := a.budget()
	return limited && a.writer.at-time.Duration(p.Order) > budget
}

// budget returns the time after its arrival for which a frame of the track may wait, QueueBudget by default. limited is
// false if frames wait for any time.
func (a *attachment) budget() (budget time.Duration, limited bool) {
	w, t := a.writer, a.follower.track
	budget = w.set.cfg.QueueBudget
	if budget == 0 {
		interval := t.Interval()
		// A frame may have to wait for the time over which the frame before is spread.
		budget = max(interval, w.set.cfg.Plan.Span(interval))
	}
	return budget, t.Skippable()
}

// measure adds a packet to the size of its frame.
func (a *attachment) measure(p *packetlog.Packet) {
	if p.Facts.Opens {
		a.formerSize, a.size = a.size, 0
	}
	a.size += congestion.PacketOverhead + len(p.Payload)
}

// frameSize returns the size on the wire, in bytes, of the frame that a packet begins: of the planned packets, which
// have the same size except for the last. A frame without a known number of packets is assumed to be as long as the
// frame before.
func (a *attachment) frameSize(p *packetlog.Packet) int {
	if !p.Facts.Framed {
		return a.formerSize
	}
	first, last, _ := a.slot.switcher.Planned(&p.Facts)
	return int(last-first+1) * (congestion.PacketOverhead + len(p.Payload))
}

// overflow drops the waiting packets of a track for a slot, because maxHeld is reached.
func (a *attachment) overflow(p *packetlog.Packet) {
	a.dropping, a.dropped = true, p.Frame()
	frames := a.clear()
	if p.Facts.Opens {
		frames++
	}
	a.cut(max(frames, 1), counters.DroppedBudget)
}

// cut informs a slot that packets of a track were lost, which affected that number of frames.
func (a *attachment) cut(frames int, reason counters.Counter) {
	w := a.writer
	s := a.slot
	if s.switcher.Active().Track == a.follower.track.ID() {
		s.switcher.Overrun(w.now)
		s.dropped(a.follower.track, frames, reason)
	}
}

// clear releases the packets of a track that wait for a slot, and returns the number of frames affected.
func (a *attachment) clear() (frames int) {
	w := a.writer
	s := a.slot
	if s.held.Len() == 0 {
		return 0
	}
	begun := false
	removed := s.receiver.path.sender.Filter(&s.held, func(h heldPacket) bool {
		if h.attachment != a {
			return true
		}
		if h.packet.Facts.Opens {
			frames++
		} else if frames == 0 {
			begun = true
		}
		h.packet.Release()
		return false
	})
	if removed {
		w.reschedule(s.receiver)
	}
	if begun {
		frames++
	}
	return frames
}

// holds reports whether a packet that the writer has passed waits to leave on the slot. Waiting packets of a track are
// in order of position. A late packet that has overtaken waiting packets is reported as waiting until these have left.
func (s *Slot) holds(t *track.Track, p *packetlog.Packet) bool {
	for i := range s.held.Len() {
		if h := s.held.At(i); h.attachment.follower.track == t {
			return p.Position >= h.packet.Position
		}
	}
	return false
}

// begin writes a packet and, if the switcher forwards it, records that its frame has begun to leave.
func (a *attachment) begin(p *packetlog.Packet) bool {
	w := a.writer
	queued := a.write(p)
	if place := p.Place(); queued && (p.Facts.Opens || place > a.reached) {
		a.reached = place
		if p.Facts.Opens || p.Facts.Framed {
			a.leaving, a.left = p.Frame(), w.at
		}
		if p.Facts.Opens {
			a.slot.receiver.path.sender.Begin(&a.slot.held)
		}
	}
	return queued
}

// begun reports whether a packet belongs to a frame that has begun to leave. On tracks without frame numbers it reports
// whether the packet precedes the last packet that has left.
func (a *attachment) begun(p *packetlog.Packet) bool { return p.Place() <= a.reached }

// drops reports whether a packet belongs to the dropped frame.
func (a *attachment) drops(p *packetlog.Packet) bool { return a.dropping && p.Frame() == a.dropped }

// reschedule updates the position of a receiver in the heap of paced receivers.
func (w *writer) reschedule(r *Receiver) {
	next, ok := r.path.sender.Next()
	switch listed := r.pacedIndex >= 0; {
	case ok && listed:
		r.tick = next
		heap.Fix(&w.paced, int(r.pacedIndex))
	case ok:
		r.tick = next
		heap.Push(&w.paced, r)
	case listed:
		heap.Remove(&w.paced, int(r.pacedIndex))
	}
}

// ticking returns the receiver whose tick is due first, or nil if none is due.
func (w *writer) ticking() *Receiver {
	if len(w.paced) > 0 && w.paced[0].tick <= w.at {
		return w.paced[0]
	}
	return nil
}

// pacedHeap holds the receivers with waiting packets or an active probe, by next tick. pacedHeap implements
// heap.Interface.
type pacedHeap []*Receiver

func (h pacedHeap) Len() int           { return len(h) }
func (h pacedHeap) Less(i, j int) bool { return h[i].tick < h[j].tick }

func (h pacedHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].pacedIndex, h[j].pacedIndex = int32(i), int32(j)
}

func (h *pacedHeap) Push(x any) {
	r := x.(*Receiver)
	r.pacedIndex = int32(len(*h))
	*h = append(*h, r)
}

func (h *pacedHeap) Pop() any {
	last := len(*h) - 1
	r := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	r.pacedIndex = -1
	return r
}
