package egress

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/congestion/sender"
	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/redundancy"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// number numbers the receiver's next packet. The negotiated form and the routes are read once per run.
func (r *Receiver) number(h *rtp.Header, payload int, kind packetlog.Class) {
	w, first := r.writer, r.run.packets == 0
	if first {
		r.agree()
		if r.path.routes.follow(w.now) {
			r.path.move(w.now)
		}
	}
	r.path.number(h, payload, kind, w.now)
	if first && r.path.estimation != nil {
		w.stepDue = min(w.stepDue, r.path.sender.StepDue())
	}
}

// agree applies the feedback that the receiver's peers have negotiated. agree is called once per run.
func (r *Receiver) agree() {
	w := r.writer
	if r.path.agree(r.path.peer.TransportSequenceID(), r.path.peer.ReportsByStream(), w.now, w.at) {
		r.padding = padding{}
		w.reschedule(r)
		w.stepDue = min(w.stepDue, r.path.sender.StepDue())
	}
}

// readReports processes the queued reports of the receiver.
func (r *Receiver) readReports() {
	w := r.writer
	reports := w.inbox.openReports(r)
	for len(reports) > 0 {
		arrived := w.set.clock.Started().Add(time.Duration(binary.BigEndian.Uint64(reports)))
		report := reports[reportTime:]
		report = report[:rtcpSize(report)]
		reports = reports[reportTime+len(report):]
		if redundancy.IsReport(report) {
			r.readPathReport(report)
		} else if r.path.departures != nil && !r.path.routes.suspended(w.now) {
			w.results = r.path.sender.Report(report, arrived, w.now, w.results[:0])
		}
	}
	if r.path.departures == nil {
		return
	}
	if cap(w.results) > keptResults {
		w.results = nil
	}
	if r.path.estimation != nil && !r.closed.Load() {
		r.syncEstimator()
	}
	r.path.departures.count(&w.stats.counts)
}

// readPathReport processes a receiver's report of its paths. If the primary path has an outage, the packets in transit
// are retransmitted.
func (r *Receiver) readPathReport(report []byte) {
	if !r.path.routes.active {
		// The selector has not seen the packets that left without a second path.
		return
	}
	w, c := r.writer, r.path.routes.copies
	began, err := c.selector.Report(report, w.now)
	if err != nil {
		w.stats.counts[counters.MalformedRTCP]++
		return
	}
	if began && !r.closed.Load() {
		c.selector.Stranded(w.now, func(ssrc uint32, sequence uint16) {
			if s := r.slots.find(ssrc); s != nil && s.kind == volumetric.KindVideo {
				r.path.sender.HoldRepair(repair{slot: s, number: sequence, unasked: true})
			}
		})
		w.reschedule(r)
	}
	c.count(&w.stats.counts)
	r.path.publish(w.at)
}

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
