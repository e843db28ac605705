package feedback

import (
	"fmt"
	"time"
)

// RoundTrip smooths the round-trip times of one peer, as RFC 6298 section 2 does. The zero value is ready.
type RoundTrip struct {
	smoothed time.Duration
}

// Add takes a measurement.
func (r *RoundTrip) Add(rtt time.Duration) {
	if r.smoothed == 0 {
		r.smoothed = rtt
		return
	}
	r.smoothed += (rtt - r.smoothed) / 8
}

// Value is the smoothed round-trip time, 0 before the first measurement.
func (r *RoundTrip) Value() time.Duration { return r.smoothed }

// ClockOffset estimates the offset of a server's clock from ours by time round trips through signalling. The zero value is ready.
//
// A round trip leaves at t0 and returns at t3 by our clock, and is read at t1 and answered at t2 by the server's. The offset lies within half of the
// travelling time of ((t1-t0)+(t2-t3))/2, wherever the delay was (RFC 5905 section 8); so the quickest of the recent round trips tells most, as in the
// clock filter of RFC 5905 section 10.
type ClockOffset struct {
	samples [16]offsetSample
	count   int
}

type offsetSample struct {
	offset, bound time.Duration
	at            time.Time
}

// maxDrift is how fast two clocks drift apart at worst: two crystals of 50 ppm each. A quick round trip of 10 minutes ago is off by 60 ms then, and gives
// way to younger ones.
const maxDrift = 100e-6

// Add takes a round trip. It fails if the times contradict each other.
func (c *ClockOffset) Add(t0, t1, t2, t3 time.Time) error {
	here, there := t3.Sub(t0), t2.Sub(t1)
	if here < 0 || there < 0 || there > here {
		return fmt.Errorf("time round trip took %v here and %v there, expected 0 to %v", here, there, here)
	}
	offset := (t1.Sub(t0) + t2.Sub(t3)) / 2
	c.samples[c.count%len(c.samples)] = offsetSample{offset: offset, bound: (here - there + 1) / 2, at: t3}
	c.count++
	return nil
}

// Estimate returns what is to be added to our clock to get the server's, and the bound of its error. It tells false before the first round trip.
func (c *ClockOffset) Estimate(now time.Time) (offset, bound time.Duration, ok bool) {
	for i, sample := range c.samples[:min(c.count, len(c.samples))] {
		aged := sample.bound + time.Duration(float64(now.Sub(sample.at))*maxDrift)
		if i == 0 || aged < bound {
			offset, bound = sample.offset, aged
		}
	}
	return offset, bound, c.count > 0
}
