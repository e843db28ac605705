package congestion

import (
	"math"
	"time"
)

const (
	// A rate may be reduced again after a round trip of at most this, as in libwebrtc, and the time that the latest acknowledged rate is taken over: before,
	// that rate is the one that the reduction was made for, or what is left of it after a burst.
	maxReductionTrip = 200 * time.Millisecond
	reductionTime    = ackShort * time.Millisecond
	// settlingTime is how long, beyond a round trip, what a probe has allowed takes to show what it does: the qualities follow within 100 ms, and larger frames after smaller ones look
	// like a queue that grows until half of the trend's groups, which span 200 ms and more, are of them.
	settlingTime = 250 * time.Millisecond
	// headroomOffset is added to what is acknowledged, so that a few packets per second do not hold the rate down.
	headroomOffset = 10e3
	// Near the capacity the rate grows by a packet per response time at least (draft-ietf-rmcat-gcc-02 section 5.5): a round trip, and 100 ms that the
	// detector takes, doubled.
	growthPacket      = 1200 * 8
	detectorTime      = 100 * time.Millisecond
	responseTimes     = 2
	maxGrowthInterval = time.Second
	// maxBurstShare bounds the rate of bursts that growth goes by, as a multiple of the acknowledged rate: a frame is sent at 2.5 times its mean rate.
	// Wireless links deliver faster bursts, which say nothing about their capacity.
	maxBurstShare = 2.5
)

// steadyShare: frames that differ by ±20 % make the rate over a tenth of a second differ by 7 %. Where it lies within three times that, the path carries what
// it has carried for half a second, and that rate is the more exact one.
const steadyShare = 0.8

// leastShare: frames are sent at 2.5 times their mean rate, so that a flow alone whose bursts do not fill the path sees a share of 0.4.
const leastShare = 1 / maxBurstShare

// rateState is that of the rate control (draft-ietf-rmcat-gcc-02 section 5.5).
type rateState uint8

const (
	rateHold rateState = iota
	rateIncrease
)

// throughput is what a receiver acknowledges, in bit/s.
type throughput struct {
	rate   float64 // over half a second
	latest float64 // over the last tenth
	bursts float64 // of bursts, the highest
	usual  float64 // of bursts usually
	known  bool
	// waited says that packets of bursts have waited on the path lately, so that bursts arrive at what it carries.
	waited bool
	// inherent is the share of packets that the path loses at any rate. Those took their part of the capacity, too.
	inherent float64
}

// aimd is the rate control: additive or multiplicative increase, multiplicative decrease to below what was acknowledged.
type aimd struct {
	cfg        RateConfig
	limits     Limits
	rate       float64 // bit/s
	state      rateState
	capacity   linkCapacity
	changed    time.Duration // when the rate was looked at last
	begun      bool          // changed is valid
	reduced    time.Duration // when it was reduced last
	hasReduced bool
	risen      time.Duration // when a probe raised it last
	hasRisen   bool
}

func newAIMD(cfg RateConfig, limits Limits) aimd {
	return aimd{cfg: cfg, limits: limits, rate: float64(limits.Start)}
}

// update steps the rate. It tells whether it was reduced.
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
		// The queue is left to empty.
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

// settling tells whether a probe has raised the rate so recently that the trend says nothing about it.
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
			// Frames are spread over less than their interval. Where they queue up all the same, the path carries no more than what they arrive at.
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

// backoff is the share of the acknowledged rate that a reduction leaves. While the path is overused bursts arrive at its capacity, so that the acknowledged
// rate is to theirs what the own share is to the capacity. A flow that has half of it falls by half as much, and one with less not by less than leastShare:
// flows come to equal rates the sooner, and together do not give back more than one alone would.
func (a *aimd) backoff(acked throughput) float64 {
	if acked.bursts <= 0 {
		return a.cfg.Backoff
	}
	return 1 - (1-a.cfg.Backoff)*min(max(acked.latest/acked.bursts, leastShare), 1)
}

// growthNear is the growth per second near the capacity.
//
// A packet per response time, the draft's, is 40 kbit/s per second: 2 % at 2 Mbit/s, and 0.013 % at 300, where the 15 % of a reduction would take 19
// minutes. A share of the own rate would not let two flows at one bottleneck come to equal rates, as both fall by the same share, too. Bursts arrive at
// the rate of the bottleneck, whoever's they are, so a share of that is the same for all: each reduction leaves 85 % of the difference between two flows.
func (a *aimd) growthNear(acked throughput, rtt time.Duration) float64 {
	packet := growthPacket / (responseTimes * (rtt + detectorTime).Seconds())
	return max(packet, a.cfg.GrowthNear*min(acked.bursts, maxBurstShare*acked.rate))
}

// probed takes the rate that a probe was received at.
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
