package carriage

import (
	"math"
	"slices"
	"time"

	"github.com/volsfu/volsfu/pkg/frametimes"
)

// sample collects times in milliseconds for percentiles.
type sample []float64

// add adds a time.
func (s *sample) add(d time.Duration) { *s = append(*s, milliseconds(d)) }

// between adds the time between two stamps if both are known.
func (s *sample) between(r *frametimes.Record, from, to frametimes.Stamp) {
	if r.Has(from) && r.Has(to) {
		s.add(time.Duration(r.Times[to] - r.Times[from]))
	}
}

// percentiles sorts the sample. A percentile is the smallest value that the given share of values do not exceed
// (nearest rank).
func (s sample) percentiles() Percentiles {
	n := len(s)
	if n == 0 {
		return Percentiles{}
	}
	slices.Sort(s)
	rank := func(share float64) float64 { return s[min(max(int(math.Ceil(share*float64(n))), 1), n)-1] }
	sum, squares := 0.0, 0.0
	for _, v := range s {
		sum += v
	}
	mean := sum / float64(n)
	for _, v := range s {
		squares += (v - mean) * (v - mean)
	}
	return Percentiles{Count: n, Mean: mean, Deviation: math.Sqrt(squares / float64(n)), P50: rank(0.5),
		P95: rank(0.95), P99: rank(0.99), Max: s[n-1]}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
