package congestion

import (
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
)

const (
	// deliveryTime is 15 frames at 30 frames per second: acknowledgements delayed by 20 ms change the rate over it by 4
	// %. A rate is known after deliveryLeast. The maximum over the last carriedTime, or up to twice that, is the
	// throughput of the path: a receiver that stalled for a moment delivered less.
	deliveryTime  = 500 * time.Millisecond
	deliveryLeast = 100 * time.Millisecond
	carriedTime   = 150 * time.Millisecond
)

// delivery measures the rates of sent and of acknowledged bytes.
type delivery struct {
	sent, acked sentBytes
	began       time.Duration // acknowledgements before this time do not count
	largest     feedback.WindowMax[float64]
}

// acknowledged adds acknowledged bytes.
func (d *delivery) acknowledged(now time.Duration, bytes int) {
	d.acked.add(now, bytes)
	if elapsed := d.elapsed(now); elapsed >= deliveryLeast {
		d.largest.Add(now, rateOver(&d.acked, now, elapsed), carriedTime)
	}
}

// carried returns the recent throughput of the path in bit/s, 0 while unknown.
func (d *delivery) carried() float64 { return d.largest.Value() }

// offered returns the send rate in bit/s.
func (d *delivery) offered(now time.Duration) float64 {
	return rateOver(&d.sent, now, max(d.elapsed(now), deliveryLeast))
}

func (d *delivery) elapsed(now time.Duration) time.Duration { return min(now-d.began, deliveryTime) }

// restart resets the acknowledged bytes.
func (d *delivery) restart(now time.Duration) {
	d.acked, d.largest, d.began = sentBytes{}, feedback.WindowMax[float64]{}, now
}

func rateOver(bytes *sentBytes, now, elapsed time.Duration) float64 {
	return float64(bytes.since(now, now-elapsed)) * 8 / elapsed.Seconds()
}
