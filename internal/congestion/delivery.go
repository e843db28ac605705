package congestion

import (
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
)

const (
	// deliveryTime is 15 frames at 30 per second: acknowledgements that are held up for 20 ms change the rate over it by 4 %. deliveryLeast is how much of it must have passed
	// until there is a rate. The largest rate of the last carriedTime, or of up to twice that, is what the path carries: who has just stood still for a moment delivered less.
	deliveryTime  = 500 * time.Millisecond
	deliveryLeast = 100 * time.Millisecond
	carriedTime   = 150 * time.Millisecond
)

// delivery measures at which rate bytes are sent, and at which they are acknowledged.
type delivery struct {
	sent, acked sentBytes
	began       time.Duration // what was acknowledged before does not count
	largest     feedback.WindowMax[float64]
}

// acknowledged takes bytes that have been acknowledged.
func (d *delivery) acknowledged(now time.Duration, bytes int) {
	d.acked.add(now, bytes)
	if elapsed := d.elapsed(now); elapsed >= deliveryLeast {
		d.largest.Add(now, rateOver(&d.acked, now, elapsed), carriedTime)
	}
}

// carried is the rate at which the path has delivered of late, in bit/s, 0 while unknown.
func (d *delivery) carried() float64 { return d.largest.Value() }

// offered is the rate at which was sent, in bit/s.
func (d *delivery) offered(now time.Duration) float64 {
	return rateOver(&d.sent, now, max(d.elapsed(now), deliveryLeast))
}

func (d *delivery) elapsed(now time.Duration) time.Duration { return min(now-d.began, deliveryTime) }

// restart forgets what was acknowledged.
func (d *delivery) restart(now time.Duration) {
	d.acked, d.largest, d.began = sentBytes{}, feedback.WindowMax[float64]{}, now
}

func rateOver(bytes *sentBytes, now, elapsed time.Duration) float64 {
	return float64(bytes.since(now, now-elapsed)) * 8 / elapsed.Seconds()
}
