package fidelity

import (
	"math"
	"time"
)

// model is a link with a constant rate, a constant delay and a first-in, first-out queue that never overflows, for
// comparison with arrivals. Times are in nanoseconds since 1970. A packet was sent between two times, and so arrives
// between two.
type model struct {
	rate        int // in bit/s
	delay       time.Duration
	early, late int64 // when the transmitter is idle again, at the earliest and at the latest
}

// arrival returns the interval in which a packet of size bytes, headers included, arrives if it was sent between two
// times and after the packets of earlier calls.
func (m *model) arrival(size int, before, after int64) (early, late int64) {
	lasts := int64(size) * 8 * int64(time.Second) / int64(m.rate)
	m.early = max(m.early, before) + lasts
	m.late = max(m.late, after) + lasts
	return m.early + int64(m.delay), m.late + int64(m.delay)
}

// deviation returns the distance of a time from an interval, 0 inside.
func deviation(at, early, late int64) time.Duration {
	switch {
	case at < early:
		return time.Duration(early - at)
	case at > late:
		return time.Duration(at - late)
	default:
		return 0
	}
}

// binomialInterval returns the 99 % interval of the number of successes in n trials of probability p: at most half a
// percent of the distribution lies below the interval, and at most half a percent above. With three shares of losses,
// one run in 33 is outside by chance.
func binomialInterval(n int, p float64) (low, high int) {
	const tail = 0.005
	// log P(k) = log P(k-1) + log((n-k+1)/k · p/(1-p)); P(0) = (1-p)^n may be too small for a float, but its logarithm
	// is not.
	logarithm := float64(n) * math.Log1p(-p)
	ratio := math.Log(p) - math.Log1p(-p)
	below := 0.0
	low = -1
	for k := 0; k <= n; k++ {
		if k > 0 {
			logarithm += math.Log(float64(n-k+1)) - math.Log(float64(k)) + ratio
		}
		below += math.Exp(logarithm) // P(X ≤ k)
		if low < 0 && below > tail {
			low = k
		}
		if below >= 1-tail {
			return low, k
		}
	}
	return low, n
}
