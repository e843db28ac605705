package congestion

import "time"

const (
	// drainStart is the queue from which the estimate is lowered further, to empty it; below drainStop it is not any more. A frame's own is 20 ms at most.
	drainStart = 30 * time.Millisecond
	drainStop  = 15 * time.Millisecond
	// maxDrain bounds that in time, leastDrain in depth: what has not emptied by then is no queue of ours.
	maxDrain   = 2 * time.Second
	leastDrain = 0.5
	// quietQueue is the queue up to which the path counts as idle enough for a probe.
	quietQueue = 5 * time.Millisecond
)

// react steps the rate control and the loss-based estimate.
func (g *GCC) react(now time.Duration, probe float64) {
	acked := g.throughput()
	usage := g.detector.usage
	if g.queue.over(now, g.cfg.Delay.QueueMax) {
		usage = Overusing
	}
	switch {
	case usage == Overusing:
		if g.rate.update(now, usage, acked, g.rtt) {
			g.stats.Overuses++
			g.strained = true
			if g.queue.reduced(now, g.rtt, g.cfg.Delay.QueueMax) {
				g.prober.resumed(now, g.prober.top.value())
			}
			if !g.draining && g.queue.delay > drainStart {
				g.draining, g.drained = true, now
			}
		}
	case probe > 0:
		g.rate.probed(now, g.probed(probe, acked))
	default:
		g.rate.update(now, usage, acked, g.rtt)
	}
	ackedRate := acked.rate
	if g.limited.limited {
		ackedRate = 0
	}
	g.loss.update(now, g.rate.rate, ackedRate, float64(g.limits.Max))
}

// probed bounds what a probe may take away: not below what the path has just carried, less what empties a queue.
func (g *GCC) probed(probe float64, acked throughput) float64 {
	if !acked.known {
		return probe
	}
	return max(probe, min(g.rate.rate, g.cfg.Rate.Backoff*acked.rate))
}

func (g *GCC) throughput() throughput {
	rate, known := g.acked.rate()
	latest, _ := g.acked.latest()
	return throughput{rate: rate, latest: latest, bursts: g.acked.bursts(), known: known, inherent: g.loss.best.inherent}
}

// publish makes the estimate from its parts.
func (g *GCC) publish(now time.Duration) {
	estimate := g.rate.rate
	if limit, ok := g.loss.limit(); ok {
		estimate = min(estimate, limit)
	}
	g.prober.estimated(now, estimate)
	estimate *= g.drain(now)
	g.estimate = min(max(estimate, float64(g.limits.Min)), float64(g.limits.Max))
	g.limited.estimated(g.estimate)
}

// drain is the share of the estimate that empties a queue within DrainTime.
//
// After a reduction to 85 % a queue of 400 ms takes 400/0.15 ms to empty, almost 3 s. libwebrtc's congestion window serves the same purpose.
func (g *GCC) drain(now time.Duration) float64 {
	if !g.draining {
		return 1
	}
	if g.queue.delay < drainStop || now-g.drained > maxDrain {
		g.draining = false
		return 1
	}
	return max(1-float64(g.queue.delay)/float64(g.cfg.Rate.DrainTime), leastDrain)
}

// plan steps the prober.
func (g *GCC) plan(now time.Duration) {
	if !g.sending {
		return
	}
	g.stepped = now
	usage := g.detector.usage
	quiet := usage == Normal && g.queue.delay <= quietQueue && !g.draining && !g.silence.broken
	g.prober.step(now, situation{estimate: g.estimate, limited: g.limited.limited, quiet: quiet, eased: quiet && g.strained})
	if quiet {
		g.strained = false
	}
}
