package congestion

import (
	"math"
	"time"
)

const (
	// Two reductions are at least a round trip (at most maxReductionTrip, as in libwebrtc) plus reductionTime apart.
	// Earlier, the latest acknowledged rate still covers packets sent before the first reduction, or the end of a
	// burst.
	maxReductionTrip = 200 * time.Millisecond
	reductionTime    = ackShort * time.Millisecond
	// settlingTime is the time beyond a round trip until the effect of a probe is visible. The allocator changes
	// qualities within 100 ms. Larger frames after smaller ones look like a growing queue until half of the trend's
	// groups, which span 200 ms or more, hold larger frames.
	settlingTime = 250 * time.Millisecond
	// headroomOffset, in bit/s, is added to the bound from the acknowledged rate, so that a few packets per second do
	// not hold the rate down.
	headroomOffset = 10e3
	// Near the capacity the rate grows by at least one packet per response time (draft-ietf-rmcat-gcc-02 section 5.5):
	// twice the sum of a round trip and the 100 ms of the detector.
	growthPacket      = 1200 * 8
	detectorTime      = 100 * time.Millisecond
	responseTimes     = 2
	maxGrowthInterval = time.Second
	// maxBurstShare bounds the burst rate that growth uses, as a multiple of the acknowledged rate: a frame is sent at
	// 2.5 times its mean rate. Wireless links deliver faster bursts, which do not show their capacity.
	maxBurstShare = 2.5
)

// steadyShare: frame sizes that vary by ±20 % change the rate over 100 ms by 7 %. If the short rate is within three
// times that (20 %) of the rate over 500 ms, the throughput is steady and the longer window is more precise.
const steadyShare = 0.8

// leastShare bounds the share that backoff computes. Frames are sent at 2.5 times their mean rate, so a single flow
// whose bursts do not fill the path has a share of 0.4.
const leastShare = 1 / maxBurstShare

// rateState is the state of the rate control (draft-ietf-rmcat-gcc-02 section 5.5).
type rateState uint8

const (
	rateHold rateState = iota
	rateIncrease
)

// throughput describes the acknowledged traffic of a receiver, in bit/s.
type throughput struct {
	rate   float64 // over 500 ms
	latest float64 // over 100 ms
	bursts float64 // highest burst rate
	usual  float64 // mean burst rate
	known  bool
	// waited reports that packets of recent bursts were queued on the path, so that the burst rate is the path's
	// capacity.
	waited bool
	// inherent is the loss ratio of the path at any rate, 0 to 1. The lost packets used capacity, too.
	inherent float64
}

// aimd is the rate control: additive or multiplicative increase, and multiplicative decrease to below the acknowledged
// rate.
type aimd struct {
	cfg        RateConfig
	limits     Limits
	rate       float64 // bit/s
	state      rateState
	capacity   linkCapacity
	changed    time.Duration // time of the last update
	begun      bool          // changed is valid
	reduced    time.Duration // time of the last reduction
	hasReduced bool
	risen      time.Duration // time of the last increase by a probe
	hasRisen   bool
}

func newAIMD(cfg RateConfig, limits Limits) aimd {
	return aimd{cfg: cfg, limits: limits, rate: float64(limits.Start)}
}

// update advances the rate and reports whether it was reduced.
func (a *aimd) update(now time.Duration, usage Usage, acked throughput, rtt time.Duration) bool {
	if !a.begun {
		a.begun, a.changed = true, now
	}
	switch usage {
	case Overusing:
		if !a.mayReduce(now, acked, rtt) {
			return false
		}
		a.reduce(now, acked)
		return true
	case Underusing:
		// Hold the rate until the queue is empty.
		a.state = rateHold
	case Normal:
		if a.state == rateHold {
			a.state, a.changed = rateIncrease, now
		}
		a.increase(now, acked, rtt)
	}
	return false
}

func (a *aimd) mayReduce(now time.Duration, acked throughput, rtt time.Duration) bool {
	if !a.hasReduced || now-a.reduced >= min(rtt, maxReductionTrip)+reductionTime {
		return true
	}
	return acked.known && acked.latest < a.rate/2
}

// settling reports whether a probe raised the rate so recently that the trend is not meaningful yet.
func (a *aimd) settling(now, rtt time.Duration) bool {
	return a.hasRisen && now-a.risen < rtt+settlingTime
}

func (a *aimd) reduce(now time.Duration, acked throughput) {
	a.state, a.changed = rateHold, now
	a.reduced, a.hasReduced = now, true
	if !acked.known {
		a.set(a.rate / 2)
		return
	}
	carried := acked.latest
	if carried >= steadyShare*acked.rate {
		carried = max(carried, acked.rate)
	}
	reduced := a.backoff(acked) * carried / (1 - acked.inherent)
	if reduced > a.rate && a.capacity.known() {
		reduced = a.backoff(acked) * a.capacity.estimate
	}
	if carried < a.capacity.lower() {
		a.capacity.reset()
	}
	a.capacity.overused(carried)
	if reduced < a.rate {
		a.set(reduced)
	}
}

func (a *aimd) increase(now time.Duration, acked throughput, rtt time.Duration) {
	elapsed := min(now-a.changed, maxGrowthInterval).Seconds()
	a.changed = now
	limit := math.Inf(1)
	if acked.known {
		if acked.rate > a.capacity.upper() {
			a.capacity.reset()
		}
		limit = a.cfg.Headroom*acked.rate + headroomOffset
		if acked.waited && acked.bursts > 0 {
			// Frames are spread over less than their interval. If their packets are queued nevertheless, the path
			// carries no more than the burst rate.
			limit = min(limit, max(acked.bursts, acked.rate)/(1-acked.inherent))
		}
	}
	if a.rate >= limit {
		return
	}
	rate := a.rate
	if a.capacity.known() {
		rate += a.growthNear(acked, rtt) * elapsed
	} else {
		rate *= math.Pow(1+a.cfg.Growth, elapsed)
	}
	a.set(min(rate, limit))
}

// backoff returns the share of the acknowledged rate that remains after a reduction. While the path is overused, bursts
// arrive at its capacity, so that latest/bursts is this flow's share of the capacity. A flow with half of the capacity
// is reduced by half as much. The share is bounded below by leastShare. Flows converge to equal rates sooner, and
// together they do not give up more than a single flow would.
func (a *aimd) backoff(acked throughput) float64 {
	if acked.bursts <= 0 {
		return a.cfg.Backoff
	}
	return 1 - (1-a.cfg.Backoff)*min(max(acked.latest/acked.bursts, leastShare), 1)
}

// growthNear returns the growth near the capacity, in bit/s per second.
//
// A packet per response time, as in the draft, is 40 kbit/s per second: 2 % at 2 Mbit/s, but 0.013 % at 300 Mbit/s, at
// which the 15 % of a reduction would need 19 minutes. A share of the flow's own rate would not let two flows at one
// bottleneck converge, because both also fall by the same share. All flows see bursts at the rate of the bottleneck, so
// a share of the burst rate is the same for all: each reduction leaves 85 % of the difference between two flows.
func (a *aimd) growthNear(acked throughput, rtt time.Duration) float64 {
	packet := growthPacket / (responseTimes * (rtt + detectorTime).Seconds())
	return max(packet, a.cfg.GrowthNear*min(acked.bursts, maxBurstShare*acked.rate))
}

// probed sets the rate measured by a probe.
func (a *aimd) probed(now time.Duration, rate float64) {
	a.changed, a.begun = now, true
	if rate > a.rate {
		a.risen, a.hasRisen = now, true
	}
	a.set(rate)
}

func (a *aimd) set(rate float64) {
	a.rate = min(max(rate, float64(a.limits.Min)), float64(a.limits.Max))
}
