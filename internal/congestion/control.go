package congestion

import "time"

const (
	// drainStart is the queue from which the estimate is lowered further, to empty it; below drainStop it is not any more. A frame's own is 20 ms at most.
	drainStart = 30 * time.Millisecond
	drainStop  = 15 * time.Millisecond
	// maxDrain bounds that in time, leastDrain in depth: what has not emptied by then is no queue of ours.
	maxDrain   = 2 * time.Second
	leastDrain = 0.5
	// After a collapse the queue is known to be our own, and what is in it is worth more to the receiver than what is captured now. It is left to empty until it
	// takes less than deepDrainTime.
	deepDrain     = 0.02
	deepDrainTime = 100 * time.Millisecond
	// quietQueue is the queue up to which the path counts as idle enough for a probe.
	quietQueue = 5 * time.Millisecond
	// A path on which no packet has waited for idleTime, 15 frames, is idle.
	idleTime = 500 * time.Millisecond
	// fullShare of the rate at which bursts arrive, when they wait, is so close to what the path carries that a probe would only fill its queue.
	fullShare = 0.9
	// A packet that waited shortQueue has met others. waitedTime is some frame intervals: of the last few frames one at least has queued up.
	shortQueue = 3 * time.Millisecond
	waitedTime = 150 * time.Millisecond
	// A probe that arrives at so many times the rate beyond which losses were found to grow, a second and more after the last of them, contradicts that.
	contradiction = 1.2
	// lossyQueue is a standing queue beyond which the losses that came with it are forgotten once it has emptied.
	lossyQueue = 200 * time.Millisecond
)

// react steps the rate control and the loss-based estimate.
func (g *gcc) react(now time.Duration, probe float64) {
	acked := g.throughput(now)
	usage := g.detector.usage
	if usage == Overusing && g.rate.settling(now, g.rtt) {
		// The queue is the probe's, or empties between frames, as large as they are now. One that stays is looked for below.
		usage = Underusing
	}
	if g.queue.over(now, g.cfg.Delay.QueueMax) || g.spilled {
		usage = Overusing
	}
	if g.lost {
		usage = Overusing
		acked = throughput{rate: g.left, latest: g.left, bursts: g.left, known: true, inherent: acked.inherent}
	}
	if limit, ok := g.loss.limit(); ok && usage != Overusing && probe > contradiction*limit && g.loss.over() {
		// What was lost was lost to a path that was another one.
		g.loss, g.relieved = newLossEstimator(g.cfg.Loss), now
	}
	switch {
	case usage == Overusing:
		if g.rate.update(now, usage, acked, g.rtt) {
			g.reduced(now, acked.bursts)
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
	g.loss.update(now, g.rate.rate, ackedRate, g.limits)
}

// overflows tells whether a report shows that the rate is too high for a queue that is too short to show it by its length, by how many packets met a queue and how many of them were lost.
// A long queue is not short, as shows soon where a path has lost its capacity. Probes, which take as much room as bursts do, others who keep the queue full, and a sender that uses little
// of the estimate are no reason to lower that.
func (g *gcc) overflows(now time.Duration, lost, met int) bool {
	if g.queue.delay > shortMost {
		g.short = shortness{}
		return false
	}
	persistent := g.short.reported(now, lost, met, max(g.loss.bound, g.loss.loss()), g.rtt)
	trying := g.tried > 0 && now-g.tried < probeShadow
	return persistent && !trying && !g.rivals.present && !g.limited.limited
}

// reduced takes note of a reduction of the rate, and of the rate at which bursts arrived then.
func (g *gcc) reduced(now time.Duration, bursts float64) {
	g.stats.Overuses++
	g.strained = true
	if g.queue.reduced(now, g.rtt, g.cfg.Delay.QueueMax) {
		g.prober.resumed(now, g.prober.top.Value())
	}
	g.prober.overused(bursts)
	if !g.draining && (g.queue.delay > drainStart || g.lost) {
		g.draining, g.drained = true, now
	}
	g.deep = g.draining && (g.deep || g.lost)
}

// probed bounds what a probe may take away: not below what the path has just carried, less what empties a queue.
func (g *gcc) probed(probe float64, acked throughput) float64 {
	if !acked.known {
		return probe
	}
	return max(probe, min(g.rate.rate, g.cfg.Rate.Backoff*acked.rate))
}

func (g *gcc) throughput(now time.Duration) throughput {
	rate, known := g.acked.rate()
	latest, _ := g.acked.latest()
	return throughput{
		rate: rate, latest: latest, bursts: g.acked.bursts(), usual: g.acked.usual(), known: known, waited: now-g.waited < waitedTime, inherent: g.loss.best.inherent,
	}
}

// publish makes the estimate from its parts.
func (g *gcc) publish(now time.Duration) {
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
func (g *gcc) drain(now time.Duration) float64 {
	if !g.draining {
		return 1
	}
	queue, length, least := g.queue.delay, g.cfg.Rate.DrainTime, leastDrain
	if g.deep {
		queue, length, least = g.backlog(now), deepDrainTime, deepDrain
	}
	if queue < drainStop || now-g.drained > maxDrain {
		g.draining, g.deep = false, false
		return 1
	}
	return max(1-float64(queue)/float64(length), least)
}

// backlog is how long what is under way still waits on a path that has lost its capacity, by what has been sent since the newest packet that was reported.
func (g *gcc) backlog(now time.Duration) time.Duration {
	unseen := float64(g.sent.since(now, g.newest)) * 8
	return max(time.Duration(min(unseen/g.left, maxDrain.Seconds())*1e9)-g.empty, 0)
}

// plan steps the prober.
func (g *gcc) plan(now time.Duration) {
	if !g.sending {
		return
	}
	g.stepped = now
	quiet := g.detector.usage != Overusing && g.queue.delay <= quietQueue && !g.draining && !g.silence.broken
	acked := g.throughput(now)
	g.prober.step(now, situation{
		estimate: g.estimate, bursts: acked.bursts, idle: now-g.waited >= idleTime, full: acked.waited && g.estimate*(1-acked.inherent) >= fullShare*acked.usual,
		limited: g.limited.limited, quiet: quiet, eased: quiet && g.strained, rtt: g.rtt,
	})
	if quiet && g.strained {
		g.strained = false
		if g.longest > lossyQueue {
			// What was lost had met a full queue of a path that was another one.
			g.loss, g.relieved = newLossEstimator(g.cfg.Loss), now
		}
		g.longest = 0
	}
}
