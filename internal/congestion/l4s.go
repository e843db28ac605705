package congestion

import (
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
)

const (
	// forgetMarks is the time without a mark, from the start on, after which GCC governs the rate, with its probes, and
	// frames leave in longer ticks.
	forgetMarks = 10 * time.Second
	// A path has lost capacity if marked packets in a row have gained fallGain of delay and arrive at less than
	// fallShare of the rate. The marks exclude that the delay varies by itself, so both limits are closer than those of
	// collapse.
	fallGain  = 2500 * time.Microsecond
	fallShare = 0.85
	// Frames that leave before the first report are not paced smoothly: their ticks mark up to a third of their packets
	// on an idle path of 100 Mbit/s. A probe among them has filled the queue when more than 1/earlyShare of the packets
	// of a report are marked.
	earlyShare = 2
	// probeBound bounds the result of a probe that was marked: it has filled the queue, and other flows have a part.
	probeBound = 0.9
	// blindQueue is a queue in which every L4S AQM marks. If blindPackets packets in a row have met it and none was
	// marked, the bottleneck does not mark, and frames need not leave smoothly.
	blindQueue   = 8 * time.Millisecond
	blindPackets = 20
	// unmarkedTail, in bits, is two packets: DualPI2 does not mark them if no other packet waits, however long they
	// have waited (RFC 9332 appendix A.1). The time that a link takes for them is at most that at the highest estimate
	// of this and the previous tailEpoch: beside others the estimate is much less than the rate of the link.
	unmarkedTail = 2 * 1500 * 8
	tailEpoch    = 10 * time.Second
	// windowTime is the time beyond a round trip of which the bytes may be in flight: a frame at 10 per second, and two
	// report intervals of 25 ms.
	windowTime = 150 * time.Millisecond
	// pausedTime is added while packets leave as Not-ECT because no report arrives. The window is then full of packets
	// that the path may have dropped, and only the report about another frame shows whether it has. It is a frame at 20
	// per second.
	pausedTime = 50 * time.Millisecond
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
	// probed is the time at which the last probe began, probing the time until which packets may belong to it, or meet
	// its queue. probeMarked is set by the first mark of them: the probe has filled the queue, and ends. smoothed is
	// the time of the first report.
	probed, probing, smoothed time.Duration
	probeMarked               bool
	// blind counts packets in a row that met blindQueue without a mark. smooth is cleared when they show that the path
	// does not mark. After forgetMarks without a mark unmarked replaces smooth: on a path that is not filled, ticks of
	// 0.5 ms cost more than they are worth, but frames at 2.5 times the estimate would fill an L4S queue before the
	// first mark.
	blind            int
	smooth, unmarked bool
	// tested is the time at which the latest test of the path began.
	tested time.Duration
	burst  burstBound
	ticks  tickMarks
	tail   minimum
}

var _ Estimator = (*l4s)(nil)

// newL4S returns an estimator for one receiver, whose reports have the codepoints of packets. The configuration must be
// valid.
func newL4S(cfg Config, now time.Time) *l4s {
	return &l4s{gcc: *newGCC(cfg, now), ecn: newECNValidation(), smooth: true, tail: minimum{length: tailEpoch}}
}

// Sent implements Estimator. While no frames are held for an overdue report, the report timer waits for none.
func (l *l4s) Sent(now time.Time, size int) {
	at := now.Sub(l.epoch)
	l.record(at, size)
	if l.holds() {
		l.timer.sent(at)
	}
	l.ecn.sent(at)
}

// Report implements Estimator.
func (l *l4s) Report(now time.Time, results []feedback.PacketResult) {
	if len(results) == 0 {
		return
	}
	at, before := now.Sub(l.epoch), l.rate.rate
	if !l.reported {
		l.smoothed = at
	}
	if l.silence.broken && (l.ecn.state == L4SFailed || l.ecn.state == L4SClassic) {
		// The path may have changed.
		l.ecn.begin()
		l.test(at)
	}
	l.gcc.Report(now, results)
	for i := range results {
		if !results[i].Received {
			l.ecn.lost(results[i].Sent.Sub(l.epoch), results[i].SentECN)
		}
	}
	burst := l.burst.length > 0
	m, left := l.receive(at)
	if reason, fallback := l.ecn.judge(at, l.queue.delay); fallback {
		l.fallBack(at, reason)
		return
	}
	switch l.ecn.state {
	case L4SCapable:
		if m.marked > 0 || l.probeMarked {
			l.begin(at, before, burst, m)
			break
		}
		l.burst.grow(at, l.rate.rate >= float64(l.limits.Max))
		if l.smooth && at-max(l.mark.marked, l.tested) >= forgetMarks {
			l.smooth, l.unmarked = false, true
		}
	case L4SMarked:
		l.respond(at, before, m, left)
	case L4SClassic:
		l.respondClassic(at, before, m)
	}
}

// receive passes the received packets to the validation. It returns the report for the response to marks, and the
// remaining rate of a path that has lost capacity, or 0.
func (l *l4s) receive(now time.Duration) (m markedReport, left float64) {
	m = markedReport{trip: l.rtt, empty: l.empty, used: 1, limited: l.limited.limited}
	if rate, known := l.acked.latest(); known {
		m.used = min(rate/l.rate.rate, 1)
	}
	l.tail.add(now, time.Duration(unmarkedTail/l.rate.rate*float64(time.Second)))
	tail := l.tail.value()
	probing, early, count := now < l.probing, 0, 0
	for i := range l.arrivals {
		a := &l.arrivals[i]
		queued := l.queue.delayOf(a.arrived - a.sent)
		congested := l.ecn.arrived(now, a, queued-tail)
		l.see(congested, queued)
		if congested || queued >= burstQueue {
			l.burst.met(now)
		}
		l.ticks.add(a.sent, queued, congested)
		switch {
		case !congested || !probing || a.probe == 0 && a.sent <= l.probed:
		case a.sent < l.smoothed:
			early++
		default:
			l.probeMarked = true
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
		m.acked += int(a.size)
		count++
		m.latest = max(m.latest, a.sent)
		m.queue += max(queued-time.Duration(float64(a.size)*8/l.rate.rate*1e9), 0)
		if congested {
			m.marked += int(a.size)
			m.sent, m.delay = max(m.sent, a.sent), queued
		}
	}
	if l.probeMarked = l.probeMarked || earlyShare*early > len(l.arrivals); l.probeMarked {
		l.probing = 0
	}
	m.queue /= time.Duration(max(count, 1))
	l.ticks.judge(now)
	m.metered = l.ticks.spaced
	return m, left
}

// see decides from a received packet whether frames leave smoothly.
func (l *l4s) see(congested bool, queued time.Duration) {
	switch {
	case congested:
		l.blind, l.smooth, l.unmarked = 0, true, false
	case queued < blindQueue:
		l.blind = 0
	default:
		if l.blind++; l.blind >= blindPackets {
			l.smooth, l.unmarked = false, false
		}
	}
}

// begin makes the rate follow marks. If the first marks belong to a probe or to bursts, they say nothing about the
// rate.
func (l *l4s) begin(now time.Duration, before float64, burst bool, m markedReport) {
	l.ecn.state = L4SMarked
	rate := l.rate.rate
	if l.probeMarked || l.rate.hasRisen && now-l.rate.risen < l.rtt+reportInterval {
		rate = max(min(before, rate), probeBound*rate)
		m.marked, l.answered = 0, now
	}
	if burst {
		m.marked, l.answered = 0, now
	}
	l.mark = newMarkResponse(now, rate)
	if l.probeMarked {
		l.mark.seek()
	}
	if m.marked > 0 {
		l.mark.alpha = max(l.mark.alpha, float64(m.marked)/float64(m.acked))
	}
	l.follow(now, l.mark.report(now, m))
}

// respond follows marks. before is the rate before the report: if GCC has reduced the rate, the marks until now have
// the same reason.
func (l *l4s) respond(now time.Duration, before float64, m markedReport, left float64) {
	switch {
	case left > 0:
		l.collapsed(now, left)
	case l.rate.rate >= before:
		l.follow(now, l.mark.report(now, m))
		if m.marked == 0 && now-l.mark.marked >= forgetMarks {
			l.ecn.state, l.probeMarked = L4SCapable, false
		}
		return
	}
	// GCC reduces the rate to Backoff of what the path carries.
	l.mark.rate, l.mark.top, l.answered = l.rate.rate, l.rate.rate/l.cfg.Rate.Backoff, now
}

// respondClassic follows the marks of a classic ECN queue.
func (l *l4s) respondClassic(now time.Duration, before float64, m markedReport) {
	if l.rate.rate < before {
		l.classic.reduced(now, l.rate.rate)
		return
	}
	l.follow(now, l.classic.report(now, m))
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
	l.smooth, l.unmarked, l.probeMarked = false, false, false
}

// test begins a test of a path after a fallback: as at the start, frames leave smoothly until the path has shown that
// it does not mark, and bursts are found again.
func (l *l4s) test(now time.Duration) {
	l.tested, l.blind, l.smooth, l.unmarked, l.ticks = now, 0, true, false, tickMarks{}
	l.burst = burstBound{changed: now}
	l.Settle(l.epoch.Add(now))
}

// Step implements Estimator.
func (l *l4s) Step(now time.Time) {
	l.gcc.Step(now)
	l.mark.rate, l.classic.rate = min(l.mark.rate, l.rate.rate), min(l.classic.rate, l.rate.rate)
	if at := now.Sub(l.epoch); l.ecn.step(at, l.rtt) {
		l.test(at)
	}
}

// Settle is that of GCC. The missing reports do not show that the path drops ECT.
func (l *l4s) Settle(now time.Time) {
	l.gcc.Settle(now)
	l.ecn.waiting = false
}

// Move is that of GCC. The other path may treat ECT otherwise, so it is tested from the beginning.
func (l *l4s) Move(now time.Time, rate Bitrate) {
	l.gcc.Move(now, rate)
	l.mark.rate, l.classic.rate, l.probeMarked = l.rate.rate, l.rate.rate, false
	l.ecn.begin()
	l.test(now.Sub(l.epoch))
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
		l.probed = now.Sub(l.epoch)
		l.probing, l.probeMarked = l.probed+2*c.Duration+l.rtt+reportInterval/2, false
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
	// A burst lengthens a classic queue for a moment and leaves it before the marks: frames in bursts would be marked
	// less than the packets of others.
	s.ProbeMarked, s.Smooth = l.probeMarked, l.ecn.state == L4SClassic || l.smooth && l.ecn.state != L4SFailed
	if s.L4S == L4SCapable && (l.smooth || l.unmarked) && !s.Evenly {
		s.Burst = l.burst.length
	}
	s.Unmarked = l.unmarked
	s.Spaced = s.Smooth && l.ticks.spaced
	if s.L4S == L4SMarked {
		s.Alpha = l.mark.alpha
		length := l.empty + windowTime
		if l.ecn.paused {
			length += pausedTime
		}
		s.Window = windowOf(l.estimate, length)
	}
	return s
}

// holds reports whether frames are held while a report is overdue. On a path that may drop packets with ECT, further
// packets show whether the path does: frames are not held.
func (l *l4s) holds() bool { return l.ecn.state == L4SFailed || l.ecn.state == L4SClassic }

// windowOf returns the bytes of a time at a rate.
func windowOf(rate float64, length time.Duration) int { return int(rate * length.Seconds() / 8) }
