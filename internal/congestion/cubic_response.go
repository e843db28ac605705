package congestion

import (
	"math"
	"time"
)

// The parameters of Cubic (RFC 9438 sections 4.6 and 5.1).
const (
	cubicBeta = 0.7 // share of the rate that remains after a mark
	cubicC    = 0.4 // segments per cubic second
	// cubicReno is the growth of Reno, in segments per round trip, that has the share of Reno with this β, up to the
	// rate before the last reduction. Beyond that rate the growth is that of Reno, 1 (section 4.3).
	cubicReno = 3 * (1 - cubicBeta) / (1 + cubicBeta)
)

// cubicResponse is the response of TCP Cubic to marks of a classic ECN queue, as a rate: a mark counts like a loss (RFC
// 3168 section 5), at most once per round trip. Windows are in segments of markSegment bits.
type cubicResponse struct {
	rate    float64       // bit/s
	top     float64       // rate before the last reduction
	cut     time.Duration // time of the last reduction
	reno    float64       // rate of a flow with the growth of Reno
	updated time.Duration
}

// newCubicResponse returns a response that begins with a mark.
func newCubicResponse(now time.Duration, rate float64) cubicResponse {
	r := cubicResponse{rate: rate, updated: now}
	r.reduced(now, cubicBeta*rate)
	return r
}

// reduced records a reduction to a rate. If the rate was below its former maximum, other flows need capacity, and the
// maximum is lowered further: fast convergence (section 4.7).
func (r *cubicResponse) reduced(now time.Duration, rate float64) {
	if r.rate < r.top {
		r.top = r.rate * (1 + cubicBeta) / 2
	} else {
		r.top = r.rate
	}
	r.rate, r.reno, r.cut, r.updated = rate, rate, now, now
}

// report returns the rate after a report.
func (r *cubicResponse) report(now time.Duration, m markedReport) float64 {
	trip := m.period()
	switch {
	case m.marked > 0 && now-r.cut >= trip:
		r.reduced(now, cubicBeta*r.rate)
	case m.marked == 0 && m.acked > 0 && !m.limited:
		r.grow(now, trip.Seconds())
	}
	r.updated = now
	return r.rate
}

// grow raises the rate to that of the cubic function, or of Reno if that is more.
func (r *cubicResponse) grow(now time.Duration, trip float64) {
	segments := markSegment / trip // bit/s of one segment per round trip
	plateau := math.Cbrt(max(r.top/segments*(1-cubicBeta)/cubicC, 0))
	t := (now - r.cut).Seconds() - plateau
	reno := cubicReno
	if r.reno >= r.top {
		reno = 1
	}
	r.reno += reno * segments * min((now-r.updated).Seconds(), 1) / trip
	r.rate = max(r.rate, min(r.top+cubicC*t*t*t*segments, 1.5*r.rate), r.reno)
}
