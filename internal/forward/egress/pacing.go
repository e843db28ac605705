package egress

import (
	"container/heap"
	"time"

	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/forward/track"
)

// maxHeld bounds the packets that wait for one receiver, whatever the budget: two frames of the longest that is forwarded by default, 14,665 packets each. They
// take 55 MB beside the cache, if it has removed them all.
const maxHeld = 1 << 15

// heldPacket is a packet that waits for its time, with a reference. It has no sequence number yet: a switcher sees packets when they leave.
type heldPacket struct {
	attachment *attachment
	packet     *packetlog.Packet
}

// offer writes a packet to a slot, now or when it is due. Audio is never held, and neither is what comes late of a frame that has begun to leave. It tells
// whether the packet was queued on the outlet.
func (w *writer) offer(a *attachment, p *packetlog.Packet) bool {
	s, r := a.slot, a.slot.receiver
	switch {
	case !w.set.paced || a.follower.track.Audio() || !a.bound:
		return w.write(a, p)
	case p.Facts.Opens:
		w.opens(a, p)
	case a.drops(p):
		return false
	case p.Facts.Sequence < a.newest && a.begun(p):
		return w.write(a, p)
	}
	a.newest = max(a.newest, p.Facts.Sequence)
	offer := pacing.Offer{Arrived: time.Duration(p.Order), Due: p.Due, Begins: p.Facts.Opens}
	if r.sender.Admit(&s.held, offer, w.at) {
		return w.begin(a, p)
	}
	if r.sender.Held() == maxHeld {
		w.overflow(a, p)
		return false
	}
	p.Retain()
	if r.sender.Hold(&s.held, heldPacket{a, p}, offer) {
		w.reschedule(r)
	}
	return false
}

// opens prepares for a frame of a track.
func (w *writer) opens(a *attachment, p *packetlog.Packet) {
	a.newest, a.dropping = p.Facts.Sequence, false
	if a.skipping && a.slot.held.Len() == 0 {
		w.skipped(a)
	}
}

// skipped tells the slot's switcher that frames were left out before the next packet of the track.
func (w *writer) skipped(a *attachment) {
	a.skipping = false
	if s := a.slot; s.switcher.Active().Track == a.follower.track.ID() {
		s.switcher.Skip(w.now)
	}
}

// tick lets packets of a receiver leave whose time has come, retransmissions first. Those that their slots take have stayed as long as the writer is late; the time before was intended.
func (w *writer) tick(r *Receiver) {
	now := w.at
	planned, _ := r.sender.Next()
	planned = min(planned, now)
	r.sender.Tick(now)
	w.repeatHeld(r)
	for {
		h, ok := r.sender.Pop(now)
		if !ok {
			break
		}
		if w.release(h) {
			w.arrived = append(w.arrived, int64(planned))
			w.stats.hold.Observe(planned-time.Duration(h.packet.Order), 1)
		}
		h.packet.Release()
	}
	w.pad(r)
	w.reschedule(r)
	w.depart(r)
	if w.ticking() == nil {
		w.dispatch()
	}
}

// release writes a packet that has waited, unless its frame has waited for too long. It tells whether the packet was queued.
func (w *writer) release(h heldPacket) bool {
	a, p := h.attachment, h.packet
	if a.skipping && p.Ordinal >= a.resumes {
		w.skipped(a)
	}
	if p.Facts.Opens && !a.begun(p) && w.overBudget(a.follower.track, p) {
		w.refuse(a, p, counters.DroppedBudget)
	}
	if a.drops(p) {
		return false
	}
	if reason, abandoned := w.abandon(a, p); abandoned {
		a.dropping, a.dropped = true, p.Frame()
		w.end(a, &p.Facts, p.Frame(), reason)
		return false
	}
	return w.begin(a, p)
}

// leaveOut leaves out the frame that begins with a packet of the track that feeds the slot.
func (w *writer) leaveOut(a *attachment, p *packetlog.Packet, reason counters.Counter) {
	s := a.slot
	s.switcher.Skip(w.now)
	if p.Facts.Framed {
		s.unbegun++
		s.settled = p.Facts.Frame
		for _, other := range s.attachments {
			other.overdue.less(p.Facts.Frame)
		}
	}
	if s.overtold > 0 {
		s.overtold--
	} else {
		w.dropped(s, a.follower.track, 1, reason)
	}
}

// overBudget tells whether a frame that has not begun is older than what may wait for a receiver.
func (w *writer) overBudget(t *track.Track, p *packetlog.Packet) bool {
	budget := w.set.cfg.QueueBudget
	if budget == 0 {
		interval := t.Interval()
		// A frame may have to wait for as long as the one before is spread.
		budget = max(interval, w.set.cfg.Plan.Span(interval))
	}
	return t.Skippable() && w.at-time.Duration(p.Order) > budget
}

// overflow gives up what waits of a track for a slot, because no more may wait.
func (w *writer) overflow(a *attachment, p *packetlog.Packet) {
	a.dropping, a.dropped = true, p.Frame()
	frames := w.clear(a)
	if p.Facts.Opens {
		frames++
	}
	w.cut(a, max(frames, 1), counters.DroppedBudget)
}

// cut tells a slot that packets of a track are lost to it, which hurt so many frames.
func (w *writer) cut(a *attachment, frames int, reason counters.Counter) {
	s := a.slot
	if s.switcher.Active().Track == a.follower.track.ID() {
		s.switcher.Overrun(w.now)
		w.dropped(s, a.follower.track, frames, reason)
	}
}

// clear lets go of what waits of a track for a slot. It returns how many frames that hurts.
func (w *writer) clear(a *attachment) (frames int) {
	s := a.slot
	if s.held.Len() == 0 {
		return 0
	}
	begun := false
	removed := s.receiver.sender.Filter(&s.held, func(h heldPacket) bool {
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

// holds tells whether a packet that the writer has passed waits to leave on the slot. Positions grow in the order in which packets of a track wait. One that
// came late and has left past the others is taken for one of them until they have left.
func (s *Slot) holds(t *track.Track, p *packetlog.Packet) bool {
	for i := range s.held.Len() {
		if h := s.held.At(i); h.attachment.follower.track == t {
			return p.Position >= h.packet.Position
		}
	}
	return false
}

// begin writes a packet, and notes that its frame has begun to leave if the switcher takes it.
func (w *writer) begin(a *attachment, p *packetlog.Packet) bool {
	queued := w.write(a, p)
	if place := p.Place(); queued && (p.Facts.Opens || place > a.reached) {
		a.reached = place
		if p.Facts.Opens || p.Facts.Framed {
			a.leaving, a.left = p.Frame(), w.at
		}
		if p.Facts.Opens {
			a.slot.receiver.sender.Begin(&a.slot.held)
		}
	}
	return queued
}

// begun tells whether a packet belongs to what has begun to leave: to a frame where packets name it, else before the last one that has left.
func (a *attachment) begun(p *packetlog.Packet) bool { return p.Place() <= a.reached }

// drops tells whether a packet belongs to the frame that was dropped.
func (a *attachment) drops(p *packetlog.Packet) bool { return a.dropping && p.Frame() == a.dropped }

// reschedule puts a receiver where it belongs among those for which packets wait.
func (w *writer) reschedule(r *Receiver) {
	next, ok := r.sender.Next()
	switch listed := r.pacedIndex >= 0; {
	case ok && listed:
		r.tick = next
		heap.Fix(&w.paced, r.pacedIndex)
	case ok:
		r.tick = next
		heap.Push(&w.paced, r)
	case listed:
		heap.Remove(&w.paced, r.pacedIndex)
	}
}

// ticking gives the receiver whose tick is due first, or nil if none is due.
func (w *writer) ticking() *Receiver {
	if len(w.paced) > 0 && w.paced[0].tick <= w.at {
		return w.paced[0]
	}
	return nil
}

// pacedHeap holds the receivers for which packets wait or a probe is under way, by their next tick. It implements heap.Interface.
type pacedHeap []*Receiver

func (h pacedHeap) Len() int           { return len(h) }
func (h pacedHeap) Less(i, j int) bool { return h[i].tick < h[j].tick }

func (h pacedHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].pacedIndex, h[j].pacedIndex = i, j
}

func (h *pacedHeap) Push(x any) {
	r := x.(*Receiver)
	r.pacedIndex = len(*h)
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
