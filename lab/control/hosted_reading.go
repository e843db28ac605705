package control

import (
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/netem/router"
	"github.com/volsfu/volsfu/internal/udp"
	"github.com/volsfu/volsfu/lab/topology"
)

// hostedReading holds all counters at one time.
type hostedReading struct {
	at         time.Duration
	network    topology.Statistics
	server     counters.Stats
	codepoints udp.CodepointCounts // of the datagrams that the server has sent
}

func (h *hosted) read() *hostedReading {
	r := &hostedReading{network: h.network.Statistics()}
	if h.conference != nil {
		r.server = h.conference.Server.Stats()
		_, r.codepoints = h.conference.Server.Codepoints()
	}
	r.at = time.Since(h.begun)
	return r
}

// wire returns the counters of a bottleneck.
func (r *hostedReading) wire(w wire) topology.WireStatistics { return r.network.Wire(w.link, w.way) }

// host returns the counters of a host. In the network of a case every host has one interface.
func (r *hostedReading) host(name string) router.InterfaceStatistics {
	for _, n := range r.network.Router.Interfaces {
		if n.Namespace == name {
			return n
		}
	}
	return router.InterfaceStatistics{}
}

// leastPackets is the number of datagrams between two readings from which their most frequent codepoint is that of the
// media. Fewer may be reports and connectivity checks only.
const leastPackets = 10

// observe records the queue and the codepoints between two readings, and returns the longest waiting time in the queue
// of the first bottleneck.
func (h *hosted) observe(before, now *hostedReading) (longest time.Duration) {
	first := h.scenario.bottlenecks()[0]
	earlier, later := before.wire(first), now.wire(first)
	waited := later.Waited.Since(&earlier.Waited)
	longest = waited.Quantile(1)
	l := h.ledgers[0]
	if l.fall > 0 && now.at > l.fall {
		l.fallen = append(l.fallen, delaySample{now.at, longest})
	}
	if h.scenario.uplink || h.scenario.participants > 0 {
		return longest
	}
	most, sum := ecn.NotECT, uint64(0)
	var sent udp.CodepointCounts
	for c := range sent {
		sent[c] = now.codepoints[c] - before.codepoints[c]
		sum += sent[c]
		if sent[c] > sent[most] {
			most = ecn.Codepoint(c)
		}
	}
	if sum >= leastPackets {
		l.left(most, now.at)
	}
	if now.server.TransportMarked > before.server.TransportMarked {
		l.arrived(ecn.CE, now.at)
	}
	return longest
}

// sample ends a sample in every ledger.
func (h *hosted) sample(before, now *hostedReading, longest time.Duration) {
	sc := h.scenario
	elapsed := (now.at - before.at).Seconds()
	hops := sc.bottlenecks()
	for i, l := range h.ledgers {
		hop := hops[min(i, len(hops)-1)]
		earlier, later := before.wire(hop), now.wire(hop)
		x := sample{
			at: now.at, capacity: sc.trace.Bits(before.at, now.at) / elapsed,
			offered: later.Sent - earlier.Sent, discarded: later.DroppedQueue - earlier.DroppedQueue,
			loss: lossOf(later.Stats),
		}
		if i == 0 {
			x.queue = longest
		}
		switch {
		case h.conference == nil:
			x.sent = sentBits(before, now, hostServer) / elapsed
			x.goodput = float64(now.host(hostReceiver).ReceivedBytes-before.host(hostReceiver).ReceivedBytes) * 8 /
				elapsed
		case sc.uplink:
			x.estimate = float64(h.publishers[0].Session.Uplink().Estimate)
			x.allocated = float64(h.receivers[0].Bandwidth().Allocated)
			x.sent = sentBits(before, now, hostPublisher) / elapsed
		case i < sc.participants:
			x.estimate = float64(h.publishers[i].Session.Uplink().Estimate)
			x.sent = sentBits(before, now, participantName(i)) / elapsed
			// Nearly everything that a participant sends is frames.
			x.goodput = x.sent * fragmentSize / (fragmentSize + congestion.PacketOverhead)
		default:
			bandwidth := h.receivers[i-sc.participants].Bandwidth()
			x.estimate, x.allocated = float64(bandwidth.Estimate), float64(bandwidth.Allocated)
			x.sent = float64(onWire(now.server.Sent)-onWire(before.server.Sent)) * 8 / elapsed
		}
		l.samples = append(l.samples, x)
	}
}

// sentBits returns the bits that a host has sent between two readings.
func sentBits(before, now *hostedReading, host string) float64 {
	return float64(now.host(host).SentBytes-before.host(host).SentBytes) * 8
}
