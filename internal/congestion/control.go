package congestion

import "time"

const (
	// Above drainStart the estimate is lowered further to drain the queue, until the queue is below drainStop. A frame
	// alone queues for 20 ms at most.
	drainStart = 30 * time.Millisecond
	drainStop  = 15 * time.Millisecond
	// maxDrain bounds the duration of draining, leastDrain the reduction. A queue that remains is not caused by this
	// sender.
	maxDrain   = 2 * time.Second
	leastDrain = 0.5
	// After a collapse the queue is known to be the sender's own, and its packets are more useful to the receiver than
	// newly captured frames. Almost nothing is sent until the queue is below deepDrainTime.
	deepDrain     = 0.02
	deepDrainTime = 100 * time.Millisecond
	// quietQueue is the longest queue with which the path counts as idle enough for a probe.
	quietQueue = 5 * time.Millisecond
	// A path is idle if no packet was queued for idleTime, 15 frames.
	idleTime = 500 * time.Millisecond
	// An estimate of fullShare of the burst rate, while bursts are queued, is so close to the capacity that a probe
	// would only fill the queue.
	fullShare = 0.9
	// A packet with shortQueue of queueing delay met other packets. waitedTime covers several frame intervals: at least
	// one of the last frames was queued.
	shortQueue = 3 * time.Millisecond
	waitedTime = 150 * time.Millisecond
	// A probe that arrives at contradiction times the loss-based limit, a second or more after the last loss, refutes
	// the limit.
	contradiction = 1.2
	// If a standing queue exceeded lossyQueue, the losses during that time are forgotten when the queue has emptied.
	lossyQueue = 200 * time.Millisecond
)

// react steps the rate control and the loss-based estimate.
func (g *gcc) react(now time.Duration, probe float64) {
	acked := g.throughput(now)
	usage := g.detector.usage
	if usage == Overusing && g.rate.settling(now, g.rtt) {
		// The queue was left by the probe, or empties between the frames, which are larger now. A standing queue is
		// checked below.
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
		// The losses belong to a path that has changed since.
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

// overflows reports whether a report shows that the rate is too high for a queue that is too short to be detected by
// its length. met is the number of packets that met a queue, lost the number of them that were lost. A long queue is
// not a short one. The result is false after a probe, which needs as much space as a burst, while cross traffic keeps
// the queue full, and while the sender uses little of the estimate.
func (g *gcc) overflows(now time.Duration, lost, met int) bool {
	if g.queue.delay > shortMost {
		g.short = shortness{}
		return false
	}
	persistent := g.short.reported(now, lost, met, max(g.loss.bound, g.loss.loss()), g.rtt)
	trying := g.tried > 0 && now-g.tried < probeShadow
	return persistent && !trying && !g.rivals.present && !g.limited.limited
}

// reduced records a reduction of the rate and the burst rate at that time.
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

// probed bounds the decrease by a probe result: the rate does not fall below the throughput of the path, less the
// backoff that drains a queue.
func (g *gcc) probed(probe float64, acked throughput) float64 {
	if !acked.known {
		return probe
	}
	return max(probe, min(g.rate.rate, g.cfg.Rate.Backoff*acked.rate))
}

// collapsed reduces the rate to that of a path that has lost capacity and has left bit/s, and drains its queue. Almost
// nothing is sent for a round trip, because the capacity may fall further until then.
func (g *gcc) collapsed(now time.Duration, left float64) {
	if !g.deep {
		g.reduced(now, left)
		g.draining, g.deep, g.drained, g.left, g.halted = true, true, now, left, now+g.rtt
	}
	g.left = min(g.left, left)
	g.rate.set(min(g.rate.rate, g.cfg.Rate.Backoff*g.left))
	g.publish(now)
}

func (g *gcc) throughput(now time.Duration) throughput {
	rate, known := g.acked.rate()
	latest, _ := g.acked.latest()
	return throughput{
		rate: rate, latest: latest, bursts: g.acked.bursts(), usual: g.acked.usual(), known: known,
		waited: now-g.waited < waitedTime, inherent: g.loss.best.inherent,
	}
}

// publish computes the estimate from its parts.
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

// drain returns the share of the estimate that drains a queue within DrainTime.
//
// After a reduction to 85 % a queue of 400 ms would need 400/0.15 ms, almost 3 s. The congestion window of libwebrtc
// has the same purpose.
func (g *gcc) drain(now time.Duration) float64 {
	if !g.draining {
		return 1
	}
	queue, length, least := g.queue.delay, g.cfg.Rate.DrainTime, leastDrain
	if g.deep && now < g.halted {
		return deepDrain
	}
	if g.deep {
		queue, length, least = g.backlog(now), deepDrainTime, deepDrain
	}
	if queue < drainStop || now-g.drained > maxDrain {
		g.draining, g.deep = false, false
		return 1
	}
	return max(1-float64(queue)/float64(length), least)
}

// backlog returns the remaining queueing delay after a collapse, computed from the bytes sent after the newest reported
// packet.
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
		estimate: g.estimate, bursts: acked.bursts, idle: now-g.waited >= idleTime,
		full:    acked.waited && g.estimate*(1-acked.inherent) >= fullShare*acked.usual,
		limited: g.limited.limited, quiet: quiet, eased: quiet && g.strained, rtt: g.rtt,
	})
	if quiet && g.strained {
		g.strained = false
		if g.longest > lossyQueue {
			// The losses met a full queue of a path that has changed since.
			g.loss, g.relieved = newLossEstimator(g.cfg.Loss), now
		}
		g.longest = 0
	}
}
