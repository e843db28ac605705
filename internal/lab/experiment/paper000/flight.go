package paper000

import (
	"math"

	"github.com/volsfu/volsfu/internal/lab/experiment"
)

// flight is what became of one frame, whoever sent it.
type flight struct {
	// At is when it was captured, in seconds since the first one.
	At float64
	// Bytes is its size as encoded.
	Bytes int
	// Sent says that it left, Whole that it came as it was sent, Shown that it was decoded.
	Sent, Whole, Shown bool
	// Transport is from its first packet sent to its last one received, Latency from capture to decoded, in ms; NaN where there is none.
	Transport, Latency float64
	// Estimate is what the way was taken to carry when it was encoded, in bit/s; 0 where that is not known.
	Estimate float64
}

// part are the flights captured between two times, in seconds.
func part(flights []flight, from, until float64) (some []flight) {
	for _, f := range flights {
		if f.At >= from && f.At < until {
			some = append(some, f)
		}
	}
	return some
}

// collect takes a number of each flight that has one.
func collect(flights []flight, number func(*flight) float64) (values []float64) {
	for i := range flights {
		if v := number(&flights[i]); !math.IsNaN(v) {
			values = append(values, v)
		}
	}
	return values
}

// perSecond is what arrived in each whole second from the first on, in Mbit/s.
func perSecond(flights []flight, length float64) []float64 {
	seconds := make([]float64, int(length))
	for _, f := range flights {
		if at := int(f.At); f.Whole && at >= 0 && at < len(seconds) {
			seconds[at] += 8 * float64(f.Bytes) / 1e6
		}
	}
	return seconds
}

// estimates are the estimates over time, in Mbit/s, one for each tenth of a second at most.
func estimates(flights []flight) (points [][2]float64) {
	next := 0.0
	for _, f := range flights {
		if f.Estimate > 0 && f.At >= next {
			points = append(points, [2]float64{f.At, f.Estimate / 1e6})
			next = math.Floor(f.At*10)/10 + 0.1
		}
	}
	return points
}

// reached is the share of the stable mean at which a rate counts as converged.
const reached = 0.9

// convergence is the first second in which a rate comes to 90 % of what it has in the mean from a second on; false where it never does, or has none.
func convergence(rates []float64, stable int) (float64, bool) {
	if stable >= len(rates) {
		return 0, false
	}
	mean := experiment.Mean(rates[stable:])
	for at, r := range rates {
		if mean > 0 && r >= reached*mean {
			return float64(at), true
		}
	}
	return 0, false
}

// firstAbove is when points first come to a value, false where they never do.
func firstAbove(points [][2]float64, value float64) (float64, bool) {
	for _, p := range points {
		if p[1] >= value {
			return p[0], true
		}
	}
	return 0, false
}

// share is a part of a whole in %, 0 of nothing.
func share(some, all int) float64 {
	if all == 0 {
		return 0
	}
	return 100 * float64(some) / float64(all)
}

// count is how many flights are so.
func count(flights []flight, so func(*flight) bool) (n int) {
	for i := range flights {
		if so(&flights[i]) {
			n++
		}
	}
	return n
}

// indexed turns values of consecutive seconds into points over time, each in the middle of its second.
func indexed(values []float64) (points [][2]float64) {
	for i, v := range values {
		points = append(points, [2]float64{float64(i) + 0.5, v})
	}
	return points
}
