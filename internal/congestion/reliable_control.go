package congestion

import (
	"math"
	"time"
)

const (
	// keepsUp: what is delivered comes as near to what is sent where the path carries it. Frames that are under way at either end of deliveryTime are 7 %.
	keepsUp = 0.9
	// usedShare of the rate is sent where what the path carries can be told from what is delivered.
	usedShare = 0.8
	// The rate doubles per second while it is not known what the path carries, and where it is far below that. From nearCapacity on it grows by growthNear per second: within the
	// 400 ms that a queue takes to be noticed by 3 %, which is 12 ms of it. Beyond pastCapacity the path is another one.
	growthFast   = 1.0
	growthNear   = 0.06
	nearCapacity = 0.8
	pastCapacity = 1.1
	// longestGrowth bounds the time that the rate grows for at once: growth follows reports, and nothing is learned without.
	longestGrowth = 200 * time.Millisecond
	// The first reduction leaves firstLeast of the rate at least, others a quarter. A delay that does not yield to maxVain small ones in a row, or to one that leaves plainly or less, is not the
	// sender's. But a queue that has grown by a quarter meanwhile, or is longer than longVain, may be that of a path that has become narrow, and only a large reduction tells.
	firstLeast   = 0.75
	maxReduction = 4
	maxVain      = 2
	plainly      = 0.5
	grown        = 1.25
	longVain     = 350 * time.Millisecond
)

// react steps the rate.
func (r *reliable) react(now time.Duration, probe float64) {
	if r.strained && r.delay.quiet() {
		r.strained = false
	}
	switch {
	case r.delay.over():
		r.changed = now
		if now >= r.settled {
			r.reduce(now)
		}
	case probe > r.rate:
		r.changed = now
		r.set(probe)
	default:
		r.grow(now)
	}
}

// reduce lowers the rate. The first step is a small one, and the queue is to show what it has changed: where it yields, or goes on growing, and less is delivered than offered, the path does
// not carry more than that. What is late without yielding is none of the sender's making, and neither is then how fast it is acknowledged.
func (r *reliable) reduce(now time.Duration) {
	carried, offered := r.delivery.carried(), r.delivery.offered(now)
	if carried == 0 {
		return
	}
	change := float64(r.delay.queue) / float64(r.before)
	r.settled, r.before = now+2*delayEpoch+min(r.rtt, maxReductionTrip), r.delay.queue
	if !r.strained {
		r.strained, r.restore, r.vain = true, r.rate, 0
		r.lower(max(min(r.cfg.Rate.Backoff*r.rate, carried), firstLeast*r.rate), carried, offered)
		return
	}
	// What may be under way has shrunk by the same share, and the queue by as much or more.
	yields, plain := change <= (1+r.kept)/2, r.kept <= plainly
	switch short := carried < keepsUp*offered; {
	case short && (yields || !plain && (change >= grown || r.delay.queue > longVain)):
		r.vain = 0
		r.lower(max(r.cfg.Rate.Backoff*carried, r.rate/maxReduction), carried, offered)
	case yields:
		// It empties.
		r.vain, r.kept = 0, 1
	case plain || r.vain+1 == maxVain:
		r.strained, r.capacity = false, 0
		r.delay.rebase(now)
		r.set(r.restore)
	default:
		r.vain++
		r.lower(r.cfg.Rate.Backoff*r.rate, carried, offered)
	}
}

// lower sets a lower rate, and notes what the path carries where the sender uses its rate.
func (r *reliable) lower(rate, carried, offered float64) {
	r.stats.Overuses++
	r.prober.overused(0)
	if offered >= usedShare*r.rate {
		r.capacity = carried
	}
	before := r.rate
	r.set(min(r.rate, rate))
	if r.kept = r.rate / before; r.kept <= plainly {
		// What had waited before has to come first.
		r.settled += r.delay.queue
	}
}

// grow raises the rate while no queue is there.
func (r *reliable) grow(now time.Duration) {
	elapsed := min(now-r.changed, longestGrowth).Seconds()
	r.changed = now
	if !r.delay.quiet() {
		return
	}
	carried := r.delivery.carried()
	if r.rate > pastCapacity*r.capacity {
		r.capacity = 0
	}
	limit := math.Inf(1)
	if carried > 0 {
		limit = r.cfg.Rate.Headroom*carried + headroomOffset
	}
	growth := growthFast
	if r.capacity > 0 && r.rate >= nearCapacity*r.capacity {
		growth = growthNear
	}
	if r.rate < limit {
		r.set(min(r.rate*math.Pow(1+growth, elapsed), limit))
	}
}

func (r *reliable) set(rate float64) {
	r.rate = min(max(rate, float64(r.limits.Min)), float64(r.limits.Max))
}

// publish tells the parts of the rate.
func (r *reliable) publish(now time.Duration) {
	r.prober.estimated(now, r.rate)
	r.limited.estimated(r.rate)
}

// plan steps the prober. Where the sender uses its rate, and it is known what the path carries, the rate grows without probes.
func (r *reliable) plan(now time.Duration) {
	if !r.started {
		return
	}
	r.stepped = now
	quiet := r.delay.quiet()
	r.prober.step(now, situation{
		estimate: r.rate, full: r.capacity > 0 && !r.limited.limited, limited: r.limited.limited, quiet: quiet, eased: quiet && !r.strained, rtt: r.rtt,
	})
}
