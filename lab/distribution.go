package lab

import (
	"math"
	"slices"
	"time"
)

// Distribution is a collection of times, for percentiles.
type Distribution struct {
	values []time.Duration
	sorted bool
}

// Add adds values.
func (d *Distribution) Add(values ...time.Duration) {
	d.values = append(d.values, values...)
	d.sorted = false
}

// Join adds all values of another distribution.
func (d *Distribution) Join(other *Distribution) { d.Add(other.values...) }

// Count returns the number of values.
func (d *Distribution) Count() int { return len(d.values) }

// Percentile returns the nearest-rank percentile for a share of 0 to 1: the smallest measured value that at least this
// share of all values does not exceed. Without values, Percentile returns 0.
func (d *Distribution) Percentile(share float64) time.Duration {
	n := len(d.values)
	if n == 0 {
		return 0
	}
	if !d.sorted {
		slices.Sort(d.values)
		d.sorted = true
	}
	rank := int(math.Ceil(share * float64(n)))
	return d.values[min(max(rank, 1), n)-1]
}

// Max returns the largest value, 0 without values.
func (d *Distribution) Max() time.Duration { return d.Percentile(1) }

// Milliseconds converts a time to a number of milliseconds, the unit of lines.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Microseconds converts a duration for reports.
func Microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// Median returns the middle value, or the mean of the middle two if their number is even; 0 for an empty list.
func Median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
