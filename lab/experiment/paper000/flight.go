package paper000

import (
	"math"

	"github.com/volsfu/volsfu/lab/experiment"
)

// flight is what became of one frame, whoever sent it.
type flight struct {
	// At is when it was captured, in seconds since the run began.
	At float64
	// Bytes is its size as encoded.
	Bytes int
	// Sent says that it left, Whole that it came as it was sent, Shown that it was decoded.
	Sent, Whole, Shown bool
	// Transport is from encoded, when it was handed over to be sent, to its last packet received, Latency from capture to decoded, in ms; NaN where there is none. That its packets leave is no beginning
	// to compare by: Pion's pacer does not say when it lets them go, so that what it holds back would be in the one and not in the other.
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

// perSecond is what came of the frames captured in each whole second from the first on, in Mbit/s, whenever they came.
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

// How a rate counts as converged: the mean of so many seconds, since frames differ in size and a flow with Cubic saws for some, differs by so much from the stable mean.
const (
	steadySeconds = 5
	steadyShare   = 0.1
)

// convergence is after how many seconds from a beginning a rate has come to what it has in the mean from a second on: from then on five seconds are in the mean within 10 % of it, whether it
// came from below or from above. Whoever competes has to have begun, since until then the rate is that of a link of one's own. It is false where it never does, or has none.
func convergence(rates []float64, begin float64, stable int) (float64, bool) {
	if stable >= len(rates) {
		return 0, false
	}
	mean := experiment.Mean(rates[stable:])
	for at := int(math.Ceil(begin)); mean > 0 && at+steadySeconds <= len(rates); at++ {
		if math.Abs(experiment.Mean(rates[at:at+steadySeconds])-mean) <= steadyShare*mean {
			return float64(at) - begin, true
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
