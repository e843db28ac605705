package congestion

import (
	"math"
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
)

const (
	// virtualTrip is the round trip of which a flow behaves, whatever its own is: the reference of TCP Prague and
	// udp_prague (draft-briscoe-iccrg-prague-congestion-control section 2.4.4). Flows with the same virtual round trip
	// have the same rate at the same share of marks.
	virtualTrip = 25 * time.Millisecond
	// markSegment, in bits, is the growth of a virtual round trip: one segment of 1,500 bytes, as other Prague flows
	// have, whatever the own packet size is. It is 480 kbit/s every 25 ms, 19.2 Mbit/s per second. With a share p of
	// marks the rate is in equilibrium at 2 markGrowth / p: two marks in a virtual round trip.
	markSegment = 1500 * 8
	markGrowth  = markSegment / (float64(virtualTrip) / float64(time.Second)) // bit/s per virtual round trip
	// alphaDecay is the weight of a virtual round trip in the mean share of marks (section 2.4.2), alphaAttack the
	// weight while the mean grows. A paced sender that is told of a mark after a round trip and up to 5 ms more meets
	// more marks of one overshoot than a sender whose acknowledgements slow down with the queue. With the weight of
	// Prague a receiver has 0.76 to 0.84 of the fair rate beside one to three Prague flows, with 3/4 of it 0.88 to 1.01
	// (vollab control prague:N, DualPI2).
	alphaDecay  = 1.0 / 16
	alphaAttack = 0.75 * alphaDecay
	// A mark multiplies the rate by 1 - α/2. leastCut bounds that for paths whose round trip exceeds the virtual one.
	leastCut = 0.5
	// A mark at a queue longer than cutQueue reduces the rate further, so that the rest of the queue drains within
	// cutDrain, two virtual round trips. L4S AQMs mark everything from 1.2 ms on, and arrival times have steps of 1 ms.
	cutQueue = 2 * time.Millisecond
	cutDrain = 50 * time.Millisecond
	// Without marks the rate grows by quickGrowth in a virtual round trip, as that of udp_prague: the queue then grows
	// by 4 % of a virtual round trip, 1 ms, before a mark is felt, and the rate doubles in 0.45 s. After recoverTrips
	// this begins while the rate is below nearLeast times its value at the last marks, and after quietTrips above
	// nearMost times that value; in between the path has shown its capacity, and the rate grows by markGrowth. The
	// marks of flows in equilibrium are one virtual round trip apart; quietTrips is that of udp_prague at 100 Mbit/s
	// (7, and one for each 1.92 MB/s).
	quickGrowth  = 0.04
	recoverTrips = 4
	quietTrips   = 14
	nearLeast    = 0.95
	nearMost     = 1.1
	// forgetMarks is the time without a mark, from the start on, after which GCC governs the rate and the pacing, with
	// its probes.
	forgetMarks = 10 * time.Second
	// While marks have arrived within recentMarks, the rate of a sender that uses little of it is in equilibrium, and
	// grows. Otherwise nothing bounds the rate, and it does not grow.
	recentMarks = time.Second
	// A path has lost capacity if marked packets in a row have gained fallGain of delay and arrive at less than
	// fallShare of the rate. The marks exclude that the delay varies by itself, so both limits are closer than those of
	// collapse.
	fallGain  = 2500 * time.Microsecond
	fallShare = 0.85
	// A probe has filled the queue when more than 1/probeShare of the packets of a report are marked. The ticks of a
	// probe, up to 16 packets, mark a third of their packets on an idle path of 100 Mbit/s.
	probeShare = 2
	// probeBound bounds the result of a probe that was marked: it has filled the queue, and other flows have a part.
	probeBound = 0.9
	// blindQueue is a queue in which every L4S AQM marks. If blindPackets packets in a row have met it and none was
	// marked, the bottleneck does not mark, and frames need not leave smoothly.
	blindQueue   = 8 * time.Millisecond
	blindPackets = 20
	// unmarkedTail, in bits, is two packets: DualPI2 does not mark them if no other packet waits, however long they
	// have waited (RFC 9332 appendix A.1).
	unmarkedTail = 2 * 1500 * 8
	// windowTime is the time beyond a round trip of which the bytes may be in flight: a frame at 10 per second, and two
	// report intervals of 25 ms.
	windowTime = 150 * time.Millisecond
)

// l4s is the Estimator of L4S. GCC with its probes governs the rate until the first mark. From then on the rate follows
// the share of marked packets, and GCC only lowers it: when a queue stands, when losses grow with the rate, when the
// path collapses, and when reports end. A receiver that hides marks therefore has at most the rate of GCC.
type l4s struct {
	gcc
	ecn  ecnValidation
	mark markResponse
	// classic replaces mark after a fallback to ECT(0).
	classic cubicResponse
	fall    collapse
	// answered is the time of the last reduction for another reason than marks. Marks of packets that left before do
	// not count: they met the same queue.
	answered time.Duration
	// probing is the time until which packets may belong to a probe, or meet its queue. probeMarked is set when the
	// probe has filled the queue, which ends the probe.
	probing     time.Duration
	probeMarked bool
	// blind counts packets in a row that met blindQueue without a mark; smooth is cleared when they show that the path
	// does not mark.
	blind               int
	smooth              bool
	markSent, markDelay time.Duration
}

var _ Estimator = (*l4s)(nil)

// newL4S returns an estimator for one receiver, whose reports have the codepoints of packets. The configuration must be
// valid.
func newL4S(cfg Config, now time.Time) *l4s {
	return &l4s{gcc: *newGCC(cfg, now), ecn: newECNValidation(), smooth: true}
}

// Sent implements Estimator.
func (l *l4s) Sent(now time.Time, size int) {
	l.gcc.Sent(now, size)
	l.ecn.sent(now.Sub(l.epoch))
}

// Report implements Estimator.
func (l *l4s) Report(now time.Time, results []feedback.PacketResult) {
	if len(results) == 0 {
		return
	}
	at, before := now.Sub(l.epoch), l.rate.rate
	if l.silence.broken && (l.ecn.state == L4SFailed || l.ecn.state == L4SClassic) {
		// The path may have changed.
		l.ecn.begin()
	}
	l.gcc.Report(now, results)
	for i := range results {
		if !results[i].Received {
			l.ecn.lost(results[i].Sent.Sub(l.epoch), results[i].SentECN)
		}
	}
	acked, marked, left := l.receive(at)
	if reason, fallback := l.ecn.judge(at, l.queue.delay); fallback {
		l.fallBack(at, reason)
	}
	switch l.ecn.state {
	case L4SCapable:
		if marked > 0 || l.probeMarked {
			l.begin(at, before, acked, marked)
		} else if at-l.mark.marked >= forgetMarks {
			l.smooth = false
		}
	case L4SMarked:
		l.respond(at, before, acked, marked, left)
	case L4SClassic:
		l.respondClassic(at, before, acked, marked)
	}
}

// receive passes the received packets to the validation. It returns the bytes of the packets that count for the
// response to marks, and of those that were marked, and the remaining rate of a path that has lost capacity, or 0.
func (l *l4s) receive(now time.Duration) (acked, marked int, left float64) {
	tail := time.Duration(unmarkedTail / l.rate.rate * float64(time.Second))
	probing, marks := now < l.probing, 0
	for i := range l.arrivals {
		a := &l.arrivals[i]
		queued := l.queue.delayOf(a.arrived - a.sent)
		congested := l.ecn.arrived(now, a, queued-tail)
		l.see(congested, queued)
		if congested {
			marks++
		}
		if !congested {
			l.fall = collapse{}
		} else if rate := l.fall.add(a.sent, a.arrived, int(a.size), queued, fallGain, fallShare,
			l.rate.rate); rate > 0 {
			left = rate
		}
		if a.sent < l.answered || a.probe != 0 || probing {
			continue
		}
		acked += int(a.size)
		if congested {
			marked += int(a.size)
			l.markSent, l.markDelay = max(l.markSent, a.sent), queued
		}
	}
	if probing && probeShare*marks > len(l.arrivals) {
		l.probeMarked, l.probing = true, 0
	}
	return acked, marked, left
}

// see decides from a received packet whether frames leave smoothly.
func (l *l4s) see(congested bool, queued time.Duration) {
	switch {
	case congested:
		l.blind, l.smooth = 0, true
	case queued < blindQueue:
		l.blind = 0
	default:
		if l.blind++; l.blind >= blindPackets {
			l.smooth = false
		}
	}
}

// begin makes the rate follow marks. If the first marks belong to a probe, they say nothing about the rate.
func (l *l4s) begin(now time.Duration, before float64, acked, marked int) {
	l.ecn.state = L4SMarked
	rate := l.rate.rate
	if l.probeMarked || l.rate.hasRisen && now-l.rate.risen < l.rtt+reportInterval {
		rate = max(min(before, rate), probeBound*rate)
		marked, l.answered = 0, now
	}
	l.mark = newMarkResponse(now, rate)
	if marked > 0 {
		l.mark.alpha = max(l.mark.alpha, float64(marked)/float64(acked))
	}
	l.follow(now, l.mark.report(now, l.response(acked, marked)))
}

// respond follows marks. before is the rate before the report: if GCC has reduced the rate, the marks until now have
// the same reason.
func (l *l4s) respond(now time.Duration, before float64, acked, marked int, left float64) {
	switch {
	case left > 0:
		l.collapsed(now, left)
	case l.rate.rate >= before:
		l.follow(now, l.mark.report(now, l.response(acked, marked)))
		if marked == 0 && now-l.mark.marked >= forgetMarks {
			l.ecn.state = L4SCapable
		}
		return
	}
	// GCC reduces the rate to Backoff of what the path carries.
	l.mark.rate, l.mark.top, l.answered = l.rate.rate, l.rate.rate/l.cfg.Rate.Backoff, now
}

// respondClassic follows the marks of a classic ECN queue.
func (l *l4s) respondClassic(now time.Duration, before float64, acked, marked int) {
	if l.rate.rate < before {
		l.classic.reduced(now, l.rate.rate)
		return
	}
	l.follow(now, l.classic.report(now, l.response(acked, marked)))
}

// response returns the input of a response.
func (l *l4s) response(acked, marked int) markedReport {
	latest, known := l.acked.latest()
	used := 1.0
	if known {
		used = min(latest/l.rate.rate, 1)
	}
	return markedReport{acked: acked, marked: marked, sent: l.markSent, delay: l.markDelay, trip: l.rtt, used: used,
		limited: l.limited.limited}
}

// follow sets the rate of a response.
func (l *l4s) follow(now time.Duration, rate float64) {
	l.rate.set(rate)
	l.mark.rate, l.classic.rate = l.rate.rate, l.rate.rate
	l.publish(now)
}

// fallBack continues after a fallback. GCC has run all the time, but marks that came from no L4S queue may have reduced
// its rate.
func (l *l4s) fallBack(now time.Duration, reason Fallback) {
	switch reason {
	case Classic:
		l.classic = newCubicResponse(now, l.rate.rate)
		l.answered = now
		l.follow(now, l.classic.rate)
	case Dropped:
		l.loss, l.relieved = newLossEstimator(l.cfg.Loss), now
	case AllMarked:
		if l.mark.marked > 0 {
			l.resume(now, l.mark.top)
		}
	}
	l.smooth = false
}

// Step implements Estimator.
func (l *l4s) Step(now time.Time) {
	l.gcc.Step(now)
	l.mark.rate, l.classic.rate = min(l.mark.rate, l.rate.rate), min(l.classic.rate, l.rate.rate)
	l.ecn.step(now.Sub(l.epoch), l.rtt)
}

// Next implements Estimator.
func (l *l4s) Next() time.Time {
	next := l.gcc.Next()
	if due, ok := l.ecn.due(l.rtt); ok && l.sending {
		if at := l.epoch.Add(due); next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next
}

// Probe implements Estimator. While the rate follows marks, it grows without probes.
func (l *l4s) Probe(now time.Time) (ProbeCluster, bool) {
	if l.ecn.state == L4SMarked || l.ecn.state == L4SClassic {
		return ProbeCluster{}, false
	}
	c, ok := l.gcc.Probe(now)
	if ok {
		l.probing, l.probeMarked = now.Sub(l.epoch)+2*c.Duration+l.rtt+reportInterval/2, false
	}
	return c, ok
}

// SetLimits implements Estimator.
func (l *l4s) SetLimits(now time.Time, limits Limits) {
	l.gcc.SetLimits(now, limits)
	l.mark.rate, l.classic.rate = l.rate.rate, l.rate.rate
}

// Stats implements Estimator.
func (l *l4s) Stats() Stats {
	s := l.gcc.Stats()
	s.ECN, s.L4S, s.ECNFallbacks = l.ecn.sending, l.ecn.state, l.ecn.fallbacks
	s.ProbeMarked, s.Smooth = l.probeMarked, l.smooth && l.ecn.state != L4SClassic && l.ecn.state != L4SFailed
	if s.L4S == L4SMarked {
		s.Alpha = l.mark.alpha
		s.Window = windowOf(l.estimate, l.empty+windowTime)
	}
	return s
}

// windowOf returns the bytes of a time at a rate.
func windowOf(rate float64, length time.Duration) int { return int(rate * length.Seconds() / 8) }

// markedReport is the part of a report that a response to marks uses.
type markedReport struct {
	acked, marked int           // bytes
	sent          time.Duration // latest departure of a marked packet
	delay         time.Duration // queueing delay of the last marked packet
	trip          time.Duration // smoothed round trip
	used          float64       // share of the rate that arrives, 0 to 1
	limited       bool          // the sender uses little of the rate
}

// markResponse is the response to marks of Prague (draft-briscoe-iccrg-prague-congestion-control section 2.4), as a
// rate. Growth and α advance by acknowledged bytes and not by time, and a cut is in proportion to the used share of the
// rate: the equilibrium is the same whatever share a sender uses, and nothing changes while nothing is sent.
type markResponse struct {
	rate   float64       // bit/s
	alpha  float64       // mean share of marks, 0 to 1
	cut    time.Duration // time of the last reduction
	marked time.Duration // time of the last report with marks
	top    float64       // rate that the path carries: at the last marks after a virtual round trip without any
}

// newMarkResponse returns a response with the α of which the rate is the equilibrium: Prague's initial α of 1 belongs
// to a slow start that has doubled the rate in the last round trip.
func newMarkResponse(now time.Duration, rate float64) markResponse {
	return markResponse{rate: rate, alpha: min(2*markGrowth/rate, 1), cut: now - virtualTrip, marked: now, top: rate}
}

// report returns the rate after a report.
func (r *markResponse) report(now time.Duration, m markedReport) float64 {
	trips := float64(m.acked) * 8 / (r.rate * virtualTrip.Seconds())
	if m.acked > 0 {
		share := float64(m.marked) / float64(m.acked)
		gain := alphaDecay
		if share > r.alpha {
			gain = alphaAttack
		}
		r.alpha += (share - r.alpha) * (1 - math.Pow(1-gain, trips))
		r.grow(now, m, trips*(1-share))
	}
	if m.marked > 0 {
		r.reduce(now, m)
	}
	return r.rate
}

// grow raises the rate for the data of some virtual round trips that arrived without marks.
func (r *markResponse) grow(now time.Duration, m markedReport, trips float64) {
	quiet := now - r.marked
	if m.limited && quiet > recentMarks {
		return
	}
	growth := markGrowth
	below := r.rate < nearLeast*r.top && quiet > recoverTrips*virtualTrip
	above := r.rate > nearMost*r.top && quiet > quietTrips*virtualTrip
	if (below || above) && !m.limited {
		growth = max(growth, quickGrowth*r.rate)
	}
	r.rate += growth * trips
}

// reduce lowers the rate, once in a virtual round trip, or in a round trip if that is longer: then by as much as in the
// virtual ones together. The marks have to belong to packets that left after the last reduction.
func (r *markResponse) reduce(now time.Duration, m markedReport) {
	if now-r.marked > virtualTrip {
		r.top = r.rate
	}
	r.marked = now
	period := max(m.trip, virtualTrip)
	if now-r.cut < period || m.sent < r.cut {
		return
	}
	r.cut = now
	drain := max(m.delay-cutQueue, 0).Seconds() / cutDrain.Seconds()
	r.rate *= max((1-r.alpha/2*m.used*period.Seconds()/virtualTrip.Seconds())*(1-drain), leastCut)
}
