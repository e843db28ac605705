package leaderboard

import (
	"math"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/feedback"
)

const (
	// lossMemory is the time constant of the mean loss. volsfu's own estimator covers about three seconds.
	lossMemory = 3 * time.Second
	// tripShare is the weight of a new round trip in the mean (RFC 6298 section 2).
	tripShare = 8
)

// base measures what the repair of frames needs from every controller: the round trip and the mean loss.
type base struct {
	limits     congestion.Limits
	trip       time.Duration // mean, 0 while unknown
	latest     time.Duration // round trip of the last report
	least      time.Duration // smallest round trip
	lost, seen float64       // packets of the last seconds, by age
	at         time.Time     // time of lost and seen
	received   uint64
	missing    uint64
}

// report measures a report.
func (b *base) report(now time.Time, results []feedback.PacketResult) {
	if !b.at.IsZero() {
		share := math.Exp(-now.Sub(b.at).Seconds() / lossMemory.Seconds())
		b.lost, b.seen = b.lost*share, b.seen*share
	}
	b.at = now
	var last time.Duration
	known := false
	for i := range results {
		r := &results[i]
		b.seen++
		if !r.Received {
			b.lost++
			b.missing++
			continue
		}
		b.received++
		if !known || r.Arrived > last {
			last, known = r.Arrived, true
		}
	}
	if !known {
		return
	}
	quickest := time.Duration(math.MaxInt64)
	for i := range results {
		if r := &results[i]; r.Received {
			quickest = min(quickest, now.Sub(r.Sent)-(last-r.Arrived))
		}
	}
	b.latest = max(quickest, 0)
	if b.least == 0 || b.latest < b.least {
		b.least = b.latest
	}
	if b.trip == 0 {
		b.trip = b.latest
	} else {
		b.trip += (b.latest - b.trip) / tripShare
	}
}

// stats returns the state with an estimate in bit/s.
func (b *base) stats(estimate float64) congestion.Stats {
	rate := congestion.Bitrate(b.bounded(estimate))
	s := congestion.Stats{Estimate: rate, DelayBased: rate, RTT: b.trip, Received: b.received, Lost: b.missing,
		QueueDelay: b.latest - b.least}
	if b.seen > 0 {
		s.Loss = b.lost / b.seen
	}
	return s
}

func (b *base) bounded(rate float64) float64 {
	return min(max(rate, float64(b.limits.Min)), float64(b.limits.Max))
}

// The methods of congestion.Estimator that have no effect on most controllers.

// Sent implements congestion.Estimator.
func (b *base) Sent(time.Time, int) {}

// Step implements congestion.Estimator.
func (b *base) Step(time.Time) {}

// Next implements congestion.Estimator.
func (b *base) Next() time.Time { return time.Time{} }

// Probe implements congestion.Estimator.
func (b *base) Probe(time.Time) (congestion.ProbeCluster, bool) {
	return congestion.ProbeCluster{}, false
}

// Want implements congestion.Estimator.
func (b *base) Want(time.Time, congestion.Bitrate) {}

// SetLimits implements congestion.Estimator.
func (b *base) SetLimits(_ time.Time, limits congestion.Limits) { b.limits = limits }
