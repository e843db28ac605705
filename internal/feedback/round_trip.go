package feedback

import "time"

// RoundTrip smooths the round-trip times of one peer, as in RFC 6298 section 2. The zero value is ready for use.
type RoundTrip struct {
	smoothed time.Duration
}

// Add adds a measurement.
func (r *RoundTrip) Add(rtt time.Duration) {
	if r.smoothed == 0 {
		r.smoothed = rtt
		return
	}
	r.smoothed += (rtt - r.smoothed) / 8
}

// Value returns the smoothed round-trip time, 0 before the first measurement.
func (r *RoundTrip) Value() time.Duration { return r.smoothed }
