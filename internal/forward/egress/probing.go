package egress

import (
	"slices"

	"github.com/volsfu/volsfu/internal/congestion/sender"
	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
)

// stepEstimators steps the senders that are due.
func (w *writer) stepEstimators() {
	w.stepDue = never
	for _, r := range w.receivers {
		if r.path.sender.StepDue() <= w.at {
			r.step()
		}
		w.stepDue = min(w.stepDue, r.path.sender.StepDue())
	}
}

// step steps the receiver's sender.
func (r *Receiver) step() {
	now := r.writer.now
	// The first probes follow what is wanted, too.
	r.path.instruct(now)
	r.follow(r.path.sender.Step(now))
}

// consult takes what follows from what the receiver's sender has learned, and from what is wanted.
func (r *Receiver) consult() {
	now := r.writer.now
	r.path.instruct(now)
	r.follow(r.path.sender.Consult(now))
}

// follow does what a step of the receiver's sender calls for, and publishes what has come of it.
func (r *Receiver) follow(change sender.Change) {
	w, p := r.writer, &r.path
	if change.Probe {
		w.stats.counts[counters.ProbesSent]++
		r.padding = padding{}
	}
	if change.Next {
		w.reschedule(r)
	}
	p.count(&w.stats.counts)
	p.window.Store(int64(p.sender.Stats().Window))
	p.publish(w.at)
	w.stepDue = min(w.stepDue, p.sender.StepDue())
}

// padding says where the packets of a probe come from once no media waits: they are sent again, by the RTX stream of
// the slot that they were sent on.
type padding struct {
	slot *Slot
	// number is that of the next packet in the slot.
	number uint16
}

// pad sends padding as far as the probe under way asks for it in this tick. Media that the writer has yet to take may
// do as well.
func (r *Receiver) pad() {
	w := r.writer
	r.path.sender.Pad(func() bool { return len(w.ready) == 0 && r.padding.repeat(r.slots.all()) })
}

// repeat sends a recent packet again: of the slot at hand the one before the last, or else the newest of one that has
// any. A receiver without RTX gets none.
func (p *padding) repeat(slots []*Slot) bool {
	if p.slot != nil && (repair{p.slot, p.number}).repeat() {
		p.number--
		return true
	}
	first := slices.Index(slots, p.slot) + 1
	for i := range slots {
		s := slots[(first+i)%len(slots)]
		if s.sent.packets == 0 || !(repair{s, s.header.SequenceNumber}).repeat() {
			continue
		}
		p.slot, p.number = s, s.header.SequenceNumber-1
		return true
	}
	return false
}

// repeat sends the packet again though it was not asked for, if it is still in the cache. Audio is not repeated.
func (n repair) repeat() bool {
	p, _, ok := n.find()
	if !ok {
		return false
	}
	defer p.Release()
	return !p.track.Audio() && n.resend(p, packetlog.Probe) == counters.NackedAnswered
}
