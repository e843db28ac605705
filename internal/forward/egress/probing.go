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
	// The first probes depend on the wanted rate, too.
	r.path.instruct(now)
	r.follow(r.path.sender.Step(now))
}

// syncEstimator updates the receiver from its sender after a report, and from the wanted rate.
func (r *Receiver) syncEstimator() {
	now := r.writer.now
	r.path.instruct(now)
	r.follow(r.path.sender.Consult(now))
}

// follow applies the result of a step of the receiver's sender, and publishes the path.
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
	p.backlog.Store(int64(p.sender.Stats().Backlog))
	p.mark()
	p.publish(w.at)
	w.stepDue = min(w.stepDue, p.sender.StepDue())
}

// padding is the source of probe packets when no media waits: sent packets are repeated on the RTX stream of their
// slot.
type padding struct {
	slot *Slot
	// number is the sequence number of the next packet to repeat in the slot.
	number uint16
}

// pad sends the padding that the active probe needs in this tick. It sends none while the writer has media to read,
// which may serve as well.
func (r *Receiver) pad() {
	w := r.writer
	r.path.sender.Pad(func() bool { return len(w.ready) == 0 && r.padding.repeat(r.slots.all()) })
}

// repeat repeats a recent packet: of the current slot the packet before the last repeated one, otherwise the newest
// packet of the next slot that has sent any. A receiver without RTX gets no padding.
func (p *padding) repeat(slots []*Slot) bool {
	if p.slot != nil && (repair{slot: p.slot, number: p.number}).repeat() {
		p.number--
		return true
	}
	first := slices.Index(slots, p.slot) + 1
	for i := range slots {
		s := slots[(first+i)%len(slots)]
		if s.sent.packets == 0 || !(repair{slot: s, number: s.header.SequenceNumber}).repeat() {
			continue
		}
		p.slot, p.number = s, s.header.SequenceNumber-1
		return true
	}
	return false
}

// repeat sends the packet again without a request, if the packet is still in the cache. Audio is not repeated.
func (n repair) repeat() bool {
	p, _, ok := n.find()
	if !ok {
		return false
	}
	defer p.Release()
	return !p.track.Audio() && n.resend(p, packetlog.Probe) == counters.NackedAnswered
}
