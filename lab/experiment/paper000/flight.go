package paper000

import (
	"math"

	"github.com/volsfu/volsfu/lab/experiment"
)

// flight is the result of one frame, independently of the sender.
type flight struct {
	// At is the capture time, in seconds since the run began.
	At float64
	// Bytes is the encoded size.
	Bytes int
	// Sent is set if the frame was sent, Whole if it arrived unchanged, Shown if it was decoded.
	Sent, Whole, Shown bool
	// Transport is the time from encoded, when the frame was passed to the sender, to its last packet received. Latency
	// is the time from capture to decoded. Both are in ms, and NaN if unknown. The departure of packets would not be
	// comparable: Pion's pacer does not report it, so that the time in the pacer would be included for one sender and
	// not for the other.
	Transport, Latency float64
	// Estimate is the estimate of the path's rate at the time of encoding, in bit/s; 0 if unknown.
	Estimate float64
}

// part returns the flights captured between two times, in seconds.
func part(flights []flight, from, until float64) (some []flight) {
	for _, f := range flights {
		if f.At >= from && f.At < until {
			some = append(some, f)
		}
	}
	return some
}

// collect returns the values of number for all flights that have a value.
func collect(flights []flight, number func(*flight) float64) (values []float64) {
	for i := range flights {
		if v := number(&flights[i]); !math.IsNaN(v) {
			values = append(values, v)
		}
	}
	return values
}

// perSecond returns the received rate of the frames captured in each whole second from the first on, in Mbit/s,
// independently of their arrival times.
func perSecond(flights []flight, length float64) []float64 {
	seconds := make([]float64, int(length))
	for _, f := range flights {
		if at := int(f.At); f.Whole && at >= 0 && at < len(seconds) {
			seconds[at] += 8 * float64(f.Bytes) / 1e6
		}
	}
	return seconds
}

// estimates returns the estimates over time, in Mbit/s, at most one for each tenth of a second.
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

// The condition of convergence: the mean over steadySeconds differs from the stable mean by at most steadyShare. The
// window is some seconds because frames differ in size and the rate of a Cubic flow is a sawtooth.
const (
	steadySeconds = 5
	steadyShare   = 0.1
)

// convergence returns the time in seconds from begin until a rate has reached its mean from stable on: from then on,
// the mean of five seconds is within 10 % of that mean, from below or from above. begin is the time at which
// competitors begin, because the earlier rate belongs to an otherwise idle link. The result is false if the rate never
// converges, or if nothing was received.
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

// firstAbove returns the time at which points first reach a value, false if they never do.
func firstAbove(points [][2]float64, value float64) (float64, bool) {
	for _, p := range points {
		if p[1] >= value {
			return p[0], true
		}
	}
	return 0, false
}

// share returns a part of a whole in %, 0 if the whole is 0.
func share(some, all int) float64 {
	if all == 0 {
		return 0
	}
	return 100 * float64(some) / float64(all)
}

// count returns the number of flights that satisfy a condition.
func count(flights []flight, so func(*flight) bool) (n int) {
	for i := range flights {
		if so(&flights[i]) {
			n++
		}
	}
	return n
}

// indexed converts values of consecutive seconds to points over time, each in the middle of its second.
func indexed(values []float64) (points [][2]float64) {
	for i, v := range values {
		points = append(points, [2]float64{float64(i) + 0.5, v})
	}
	return points
}
