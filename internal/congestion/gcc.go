package congestion

import (
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/feedback"
)

// stepInterval is the minimum time between steps while a probe is due and the path is not quiet.
const stepInterval = 25 * time.Millisecond

// gcc is the Estimator of Google Congestion Control.
type gcc struct {
	cfg    Config
	limits Limits
	epoch  time.Time // origin of the times below
	stats  Stats

	groups   groups
	trend    trendline
	detector overuseDetector
	queue    standingQueue
	acked    acknowledged
	rate     aimd
	loss     lossEstimator
	limited  applicationLimited
	silence  silence
	timer    reportTimer
	collapse collapse
	trains   trainRates
	rivals   contention
	short    shortness
	prober   prober

	delay    time.Duration // delay of the last packet, with an unknown clock offset
	queued   time.Duration // queueing delay of the last received packet
	newest   time.Duration // send time of the packet that arrived last
	empty    time.Duration // smallest round trip since forget, 0 while unknown
	waited   time.Duration // report time of the last packet that was queued
	sent     sentBytes
	left     float64 // remaining rate after a collapse, bit/s
	rtt      time.Duration
	stepped  time.Duration // time of the last call of the prober
	drained  time.Duration // start of draining
	halted   time.Duration // end of the time after collapsed in which almost nothing is sent
	relieved time.Duration // when a long queue had emptied; losses of packets sent earlier do not count
	longest  time.Duration // longest standing queue since strained was set
	tried    time.Duration // report time of the last packet of a probe
	estimate float64       // bit/s

	reported bool // at least one packet was reported
	delays   bool // delay is valid
	lost     bool // the last report showed a collapse
	spilled  bool // the last report showed that a short queue overflows although frames are sent evenly
	sending  bool
	held     bool // a report is overdue
	draining bool
	deep     bool // draining follows a collapse
	strained bool // the rate was reduced, and the queue has not emptied since

	arrivals []arrival // received packets of one report, in the order of arrival
}

// arrival is a received packet.
type arrival struct {
	sent, arrived time.Duration
	size          uint16
	ecn, left     ecn.Codepoint // on arrival, and on departure
	probe         int32
}

var _ Estimator = (*gcc)(nil)

// newGCC returns an estimator for one receiver. The configuration must be valid.
func newGCC(cfg Config, now time.Time) *gcc {
	limits := cfg.Limits()
	return &gcc{
		cfg:      cfg,
		limits:   limits,
		epoch:    now,
		groups:   groups{cfg: cfg.Delay},
		queue:    newStandingQueue(),
		rate:     newAIMD(cfg.Rate, limits),
		loss:     newLossEstimator(cfg.Loss),
		limited:  applicationLimited{share: cfg.Rate.UnusedShare, target: cfg.Rate.UnusedShare * float64(limits.Start)},
		silence:  silence{cfg: cfg.Silence},
		timer:    newReportTimer(cfg.Silence.Timeout),
		prober:   newProber(cfg.Probe, limits),
		estimate: float64(limits.Start),
	}
}

// Sent implements Estimator.
func (g *gcc) Sent(now time.Time, size int) {
	at := now.Sub(g.epoch)
	g.record(at, size)
	g.timer.sent(at)
}

// record records a packet, except in the report timer.
func (g *gcc) record(at time.Duration, size int) {
	g.sending = true
	size = min(max(size, 0), maxSize)
	g.limited.sent(at, size)
	g.sent.add(at, size)
	g.silence.sent(at, g.rtt)
}

// Report implements Estimator. A report without received packets has no delays, but it ends a silence.
func (g *gcc) Report(now time.Time, results []feedback.PacketResult) {
	if len(results) == 0 {
		return
	}
	at := now.Sub(g.epoch)
	if before, ended := g.silence.reported(at); ended {
		g.resume(at, before)
	}
	g.limited.step(at)
	metLost, met := g.take(at, results)
	queued := g.measureRoundTrip(at)
	if oldest, newest, ok := g.sentBetween(results); ok {
		g.timer.reported(at, oldest, newest)
	}
	g.held = g.timer.overdue
	g.rivals.reported(at, len(results)-len(g.arrivals), len(results), g.loss.best.inherent, queued)
	g.spilled = g.overflows(at, metLost, met)
	probe := g.arrive(at)
	g.react(at, probe)
	g.publish(at)
	g.plan(at)
}

// Step implements Estimator.
func (g *gcc) Step(now time.Time) {
	at := now.Sub(g.epoch)
	g.limited.step(at)
	g.timer.step(at)
	g.held = g.timer.overdue
	if g.silence.step(at, g.estimate) {
		g.stats.Silences++
		g.rate.set(min(g.rate.rate, g.estimate) * g.cfg.Silence.Backoff)
		g.publish(at)
	}
	g.plan(at)
}

// Next implements Estimator.
func (g *gcc) Next() time.Time {
	if !g.sending {
		return time.Time{}
	}
	next, ok := g.prober.wake()
	next = max(next, g.stepped+stepInterval)
	if g.silence.waiting && (!ok || g.silence.due < next) {
		next, ok = g.silence.due, true
	}
	if due, expected := g.timer.due(); expected && !g.held && (!ok || due < next) {
		next, ok = due, true
	}
	if !ok {
		return time.Time{}
	}
	return g.epoch.Add(next)
}

// Settle records that no report is expected about the packets sent until now: all of them are reported, or reports are
// not passed on at present. That is no silence.
func (g *gcc) Settle(time.Time) {
	g.timer.settle()
	g.held, g.silence.waiting = false, false
}

// Move records that packets leave on another path from now on, of which nothing is known but the rate that it is
// estimated to carry. Delays and losses of the former path do not count any more.
func (g *gcc) Move(now time.Time, rate Bitrate) {
	at := now.Sub(g.epoch)
	g.Settle(now)
	g.forget()
	g.silence.ended, g.relieved, g.loss = at, at, newLossEstimator(g.cfg.Loss)
	g.rate.state, g.rate.changed = rateHold, at
	g.rate.set(float64(rate))
	g.publish(at)
}

// Estimate implements Estimator.
func (g *gcc) Estimate() Bitrate { return Bitrate(g.estimate) }

// Probe implements Estimator.
func (g *gcc) Probe(now time.Time) (ProbeCluster, bool) {
	c, ok := g.prober.next(now.Sub(g.epoch))
	if ok {
		g.stats.Probes++
		g.trains.expect(c)
	}
	return c, ok
}

// Want implements Estimator.
func (g *gcc) Want(now time.Time, rate Bitrate) {
	g.prober.wanted(now.Sub(g.epoch), float64(rate))
}

// SetLimits implements Estimator.
func (g *gcc) SetLimits(now time.Time, limits Limits) {
	if !g.reported {
		g.rate.rate = float64(limits.Start)
	}
	g.prober.limit(limits)
	g.limits, g.rate.limits = limits, limits
	g.rate.set(g.rate.rate)
	g.publish(now.Sub(g.epoch))
}

// Stats implements Estimator.
func (g *gcc) Stats() Stats {
	s := g.stats
	s.Estimate, s.DelayBased = g.Estimate(), Bitrate(g.rate.rate)
	if limit, ok := g.loss.limit(); ok {
		s.LossBased = Bitrate(limit)
	}
	if rate, ok := g.acked.rate(); ok {
		s.Acknowledged = Bitrate(rate)
	}
	s.Trend, s.Threshold, s.Usage = g.detector.trend, g.detector.threshold, g.detector.usage
	s.QueueDelay, s.RTT = g.queue.delay, g.rtt
	s.Loss, s.InherentLoss = g.loss.loss(), g.loss.best.inherent
	if g.held {
		s.Window = heldWindow
	}
	s.ApplicationLimited, s.Evenly = g.limited.limited, g.rivals.present || g.short.present
	return s
}

// resume restarts after a silence: the path may have changed, and all history ends before the silence.
func (g *gcc) resume(now time.Duration, before float64) {
	g.forget()
	g.rate.state, g.rate.changed = rateHold, now
	g.prober.resumed(now, before)
}

// forget drops everything derived from packet times.
func (g *gcc) forget() {
	g.groups.reset()
	g.trend.reset()
	g.detector.reset()
	g.queue.reset()
	g.collapse = collapse{}
	g.rivals, g.short = contention{}, shortness{}
	g.acked.reset()
	g.delays, g.draining, g.deep, g.spilled = false, false, false, false
	g.empty = 0
}
