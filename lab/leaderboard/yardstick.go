package leaderboard

import (
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/lab/control"
)

const (
	// knowingStep is the interval at which the estimate of a yardstick follows the link.
	knowingStep = 10 * time.Millisecond
	// knowingShare is the share of the link's rate that is used while there is no queue.
	knowingShare = 1
	// knowingDrain is the time in which a queue is drained.
	knowingDrain = 200 * time.Millisecond
	// knowingLeast is the least share of the rate while a queue is drained.
	knowingLeast = 0.2
)

// knowing is a yardstick: it knows the rate of the link, as of a time ago, and the queue from reports. A controller
// that learns from reports has to estimate both.
type knowing struct {
	base
	rate func(time.Time) float64
	late time.Duration
	now  time.Time
}

// newKnowing returns a yardstick that knows the rate at once, or with late one round trip later.
func newKnowing(late bool) func(control.EstimatorStart) congestion.Estimator {
	return func(s control.EstimatorStart) congestion.Estimator {
		k := &knowing{base: base{limits: s.Limits}, rate: s.Rate, now: s.Now}
		if late {
			k.late = s.RTT
		}
		return k
	}
}

// Report implements congestion.Estimator.
func (k *knowing) Report(now time.Time, results []feedback.PacketResult) {
	k.report(now, results)
	k.now = now
}

// Step implements congestion.Estimator.
func (k *knowing) Step(now time.Time) { k.now = now }

// Next implements congestion.Estimator.
func (k *knowing) Next() time.Time { return k.now.Add(knowingStep) }

// Estimate implements congestion.Estimator.
func (k *knowing) Estimate() congestion.Bitrate { return k.Stats().Estimate }

// Stats implements congestion.Estimator.
func (k *knowing) Stats() congestion.Stats {
	queue := k.latest - k.least
	share := knowingShare * (1 - queue.Seconds()/knowingDrain.Seconds())
	return k.stats(max(share, knowingLeast) * k.rate(k.now.Add(-k.late)))
}
