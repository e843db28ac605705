package congestion

import (
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
)

// stepInterval is the least time between steps: a probe may be due and the path not be quiet.
const stepInterval = 25 * time.Millisecond

// gcc is Google Congestion Control, an Estimator.
type gcc struct {
	cfg    Config
	limits Limits
	epoch  time.Time // times below count from here
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
	collapse collapse
	trains   trainRates
	rivals   contention
	short    shortness
	prober   prober

	delay    time.Duration // of the last packet, with an unknown difference of clocks
	queued   time.Duration // what the last packet that arrived waited
	newest   time.Duration // when the packet was sent that arrived last
	empty    time.Duration // the least round trip since the path was forgotten last, 0 while unknown
	waited   time.Duration // when a packet was reported last that had waited
	sent     sentBytes
	left     float64 // what a path that has lost its capacity still carries, bit/s
	rtt      time.Duration
	stepped  time.Duration // when probes were last thought of
	drained  time.Duration // when draining began
	relieved time.Duration // when a long queue had emptied; what was sent before and got lost was lost to it
	longest  time.Duration // the longest standing queue since the path was strained
	tried    time.Duration // when a packet of a probe was reported last
	estimate float64       // bit/s

	reported bool // a packet was reported on
	delays   bool // delay is valid
	lost     bool // the last report has shown that the path has lost its capacity
	spilled  bool // the last report has shown that a short queue overflows though frames leave evenly
	sending  bool
	draining bool
	deep     bool // draining follows a collapse
	strained bool // the rate was reduced, and the queue has not emptied since

	arrivals []arrival // of one report, in order
}

// arrival is a packet that was received.
type arrival struct {
	sent, arrived time.Duration
	size, probe   int32
}

var _ Estimator = (*gcc)(nil)

// newGCC makes an estimator for one receiver. The configuration has to be valid.
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
		prober:   newProber(cfg.Probe, limits),
		estimate: float64(limits.Start),
	}
}

// Sent implements Estimator.
func (g *gcc) Sent(now time.Time, size int) {
	at := now.Sub(g.epoch)
	g.sending = true
	size = min(max(size, 0), maxSize)
	g.limited.sent(at, size)
	g.sent.add(at, size)
	g.silence.sent(at, g.rtt)
}

// Report implements Estimator. Without received packets a report says nothing about the delay, but it ends a silence.
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
	if !ok {
		return time.Time{}
	}
	return g.epoch.Add(next)
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
	s.ApplicationLimited, s.Evenly = g.limited.limited, g.rivals.present || g.short.present
	return s
}

// resume begins anew after a silence: the path may have changed, and what is known about the past ends before it.
func (g *gcc) resume(now time.Duration, before float64) {
	g.forget()
	g.rate.state, g.rate.changed = rateHold, now
	g.prober.resumed(now, before)
}

// forget drops what is known from the times of packets.
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
