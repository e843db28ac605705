package congestion

import (
	"math"
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
)

// standstill is the time beyond a round trip without acknowledgements after which the peer counts as stalled, for
// example a background tab or a busy host. The times of packets sent before the stall ends say nothing about the path.
const standstill = 300 * time.Millisecond

// take processes acknowledgements. It returns the measured rate of a probe in bit/s, or 0.
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

// timed processes the times of acknowledged packets.
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

// measured returns the arrival rate of a train. If its first acknowledgement was delayed, the train seems to have
// arrived faster than it did. The rate is therefore bounded by the whole time since the train could have begun to
// arrive.
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

// resume restarts after a stall of the peer.
func (r *reliable) resume(now time.Duration) {
	r.resumed = now
	r.delivery.restart(now)
	r.delay.restart()
}
