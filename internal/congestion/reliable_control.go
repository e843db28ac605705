package congestion

import (
	"math"
	"time"
)

const (
	// keepsUp: a delivery rate above this share of the send rate shows that the path carries the send rate. Data in
	// flight at either end of deliveryTime is 7 %.
	keepsUp = 0.9
	// The delivery rate is the throughput of the path if at least usedShare of the rate is sent.
	usedShare = 0.8
	// The rate doubles per second while the throughput of the path is unknown or much higher. Above nearCapacity the
	// rate grows by growthNear per second: by 3 % within the 400 ms in which a queue is detected, which is a queue of
	// 12 ms. Beyond pastCapacity the path must have changed.
	growthFast   = 1.0
	growthNear   = 0.06
	nearCapacity = 0.8
	pastCapacity = 1.1
	// longestGrowth bounds the elapsed time of one growth step: growth follows reports, and without reports nothing is
	// learned.
	longestGrowth = 200 * time.Millisecond
	// The first reduction keeps at least firstLeast of the rate, later ones a quarter. A delay that does not respond to
	// maxVain small reductions in a row, or to one that keeps plainly or less, is not caused by the sender. But a queue
	// that has grown by the factor grown meanwhile, or is longer than longVain, may belong to a path that has lost
	// capacity, and only a large reduction decides.
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

// reduce lowers the rate. The first reduction is small, and the response of the queue is observed. If the queue
// responds or keeps growing, and less is delivered than offered, the delivery rate is the capacity of the path. A delay
// that does not respond is not caused by the sender, and the delivery rate is not limited by the path.
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
	// The bytes in flight have shrunk by the same share, and the queue by as much or more.
	yields, plain := change <= (1+r.kept)/2, r.kept <= plainly
	switch short := carried < keepsUp*offered; {
	case short && (yields || !plain && (change >= grown || r.delay.queue > longVain)):
		r.vain = 0
		r.lower(max(r.cfg.Rate.Backoff*carried, r.rate/maxReduction), carried, offered)
	case yields:
		// The queue drains.
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

// lower sets a lower rate and records the throughput of the path if the sender uses its rate.
func (r *reliable) lower(rate, carried, offered float64) {
	r.stats.Overuses++
	r.prober.overused(0)
	if offered >= usedShare*r.rate {
		r.capacity = carried
	}
	before := r.rate
	r.set(min(r.rate, rate))
	if r.kept = r.rate / before; r.kept <= plainly {
		// The data already queued has to be delivered first.
		r.settled += r.delay.queue
	}
}

// grow raises the rate while there is no queue.
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

// publish passes the rate to the prober and to limited.
func (r *reliable) publish(now time.Duration) {
	r.prober.estimated(now, r.rate)
	r.limited.estimated(r.rate)
}

// plan steps the prober. If the sender uses its rate and the capacity is known, the rate grows without probes.
func (r *reliable) plan(now time.Duration) {
	if !r.started {
		return
	}
	r.stepped = now
	quiet := r.delay.quiet()
	r.prober.step(now, situation{
		estimate: r.rate, full: r.capacity > 0 && !r.limited.limited, limited: r.limited.limited, quiet: quiet,
		eased: quiet && !r.strained, rtt: r.rtt,
	})
}
