package control

import (
	"fmt"
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/lab"
)

// record builds the record of the run.
func (h *hosted) record() (*Record, error) {
	sc := h.scenario
	r := &Record{scenario: sc, ladder: sc.ladder(), receivers: h.ledgers}
	unsent := int64(0)
	if sc.uplink || sc.participants > 0 {
		for _, p := range h.publishers {
			unsent += p.Session.Uplink().Dropped
		}
	}
	for i, peer := range h.receivers {
		if err := peer.Failure(); err != nil {
			return nil, err
		}
		if err := fillLedger(h.ledgers[sc.participants+i], peer, h.begun, unsent); err != nil {
			return nil, fmt.Errorf("receiver %d: %w", i, err)
		}
	}
	now := h.read()
	first := h.ledgers[0]
	switch {
	case sc.uplink || sc.participants > 0:
		first.droppedWhole += int(unsent)
		for i, p := range h.publishers {
			first.sentBytes[feedback.Probe] += p.Session.Uplink().ProbeBytes
			host := hostPublisher
			if sc.participants > 0 {
				host = participantName(i)
			}
			first.sentBytes[feedback.Media] += int64(now.host(host).SentBytes)
		}
		first.sentBytes[feedback.Media] -= min(first.sentBytes[feedback.Probe], first.sentBytes[feedback.Media])
	default:
		first.sentByServer(&now.server.Sent)
	}
	h.queues(r, now)
	h.beside(r, now)
	return r, nil
}

// queues sets the figures of the bottlenecks.
func (h *hosted) queues(r *Record, now *hostedReading) {
	var waited netem.DelayCounts
	var l4s, classic netem.ClassStats
	separate := false
	for _, hop := range h.scenario.bottlenecks() {
		w := now.wire(hop)
		waited.Join(&w.Waited)
		r.discarded += w.DroppedQueue
		if w.Classes != nil {
			separate = true
			joinClass(&l4s, &w.Classes.L4S)
			joinClass(&classic, &w.Classes.Classic)
		}
	}
	r.queue = queueFigures(&waited)
	if separate {
		r.lowLatency, r.classic = classStatsFigures(&l4s), classStatsFigures(&classic)
	}
	v := now.network.Router.Validity()
	r.emulation = &EmulationFigures{Valid: v.Valid, Reason: v.Reason, Disturbance: v.Disturbance,
		LateP95: lab.Milliseconds(v.P95), LateP999: lab.Milliseconds(v.P999)}
}

// joinClass adds the counters of a class at another bottleneck.
func joinClass(sum, other *netem.ClassStats) {
	sum.Packets += other.Packets
	sum.Marked += other.Marked
	sum.Dropped += other.Dropped
	sum.Waited.Join(&other.Waited)
}

// classStatsFigures returns the figures of a class, or nil if the class had no packet.
func classStatsFigures(s *netem.ClassStats) *ClassFigures {
	if s.Packets == 0 {
		return nil
	}
	ms := func(share float64) float64 { return lab.Milliseconds(s.Waited.Quantile(share)) }
	return &ClassFigures{Packets: s.Packets, Marked: s.Marked, Dropped: s.Dropped, P50: ms(0.5), P99: ms(0.99),
		Max: ms(1)}
}

// beside sets the competitors' figures: their packets are those of the interfaces of their hosts. In the queue, packets
// of competitors are not told from those of the media.
func (h *hosted) beside(r *Record, now *hostedReading) {
	sc := h.scenario
	if h.after == nil || h.measured == nil {
		return
	}
	hop := sc.bottlenecks()[0]
	earlier, later := h.before.wire(hop), h.after.wire(hop)
	waited := later.Waited.Since(&earlier.Waited)
	offered := float64(h.after.host(hostRival).Sent - h.before.host(hostRival).Sent)
	arrived := float64(h.after.host(hostSink).Received - h.before.host(hostSink).Received)
	bytes := now.host(hostSink).ReceivedBytes - h.measured.host(hostSink).ReceivedBytes
	elapsed := min(h.end, now.at) - h.measured.at
	rate := float64(bytes) * 8 / max(elapsed.Seconds(), time.Millisecond.Seconds()) / float64(sc.cubics+sc.pragues)
	r.others = &OtherFigures{Loss: max(offered-arrived, 0) / max(offered, 1),
		QueueP95: lab.Milliseconds(waited.Quantile(0.95)), ShareOfFair: figure(rate / sc.fair())}
}
