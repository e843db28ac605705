package congestion

import (
	"math"
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
)

// standstill is how long beyond a round trip nothing may be acknowledged of what was sent until the peer counts as one that stands still, as a tab in the background or a busy
// host does. The times of what was sent before it goes on say nothing about the path.
const standstill = 300 * time.Millisecond

// take takes what has been acknowledged. It returns the rate of a probe, 0 for none.
func (r *reliable) take(now time.Duration, results []feedback.PacketResult) (probe float64) {
	bytes := 0
	for i := range results {
		p := &results[i]
		switch {
		case !p.Received:
			if !p.Late {
				r.stats.Lost++
			}
			continue
		case p.Late && r.stats.Lost > 0:
			r.stats.Lost--
		}
		r.stats.Received++
		bytes += min(max(p.Size, 0), maxSize)
		if behind := now - p.Arrived; !r.reported || behind < r.ahead {
			r.ahead = behind
		}
		r.reported = true
	}
	if bytes == 0 {
		return 0
	}
	if r.waiting && now-r.since > standstill+r.rtt {
		r.resume(now)
	} else {
		r.delivery.acknowledged(now, bytes)
	}
	r.waiting = false
	return r.timed(now, results)
}

// timed takes the times of what has been acknowledged.
func (r *reliable) timed(now time.Duration, results []feedback.PacketResult) (probe float64) {
	quickest := time.Duration(math.MaxInt64)
	for i := range results {
		p := &results[i]
		if !p.Received {
			continue
		}
		sent := p.Sent.Sub(r.epoch)
		if sent >= r.resumed {
			quickest = min(quickest, p.Arrived+r.ahead-sent)
		}
		if p.Probe == 0 {
			continue
		}
		if rate, cluster, ok := r.trains.add(p.Probe, sent, p.Arrived, min(max(p.Size, 0), maxSize)); ok {
			probe = max(probe, r.measured(&r.trains.trains[cluster.ID%trains], rate))
		}
	}
	if quickest == math.MaxInt64 {
		return probe
	}
	quickest = max(quickest, 0)
	if r.rtt == 0 {
		r.rtt = quickest
	} else {
		r.rtt += (quickest - r.rtt) / 8
	}
	r.delay.add(now, quickest)
	return probe
}

// measured is the rate that a train gives. Where its first acknowledgement was held up, the train seems to have arrived faster than it did: it has taken the whole time since it
// could have begun to arrive.
func (r *reliable) measured(t *train, rate float64) float64 {
	if !t.counted {
		t.counted = true
		r.stats.ProbesMeasured++
	}
	if took := t.lastArrived + r.ahead - t.firstSent - r.trip(); took > 0 {
		rate = min(rate, float64(t.bytes-t.firstSize)*8/took.Seconds())
	}
	return rate
}

// resume begins anew behind a standstill of the peer's.
func (r *reliable) resume(now time.Duration) {
	r.resumed = now
	r.delivery.restart(now)
	r.delay.restart()
}
