package lab

import (
	"math"
	"slices"
	"time"
)

// Distribution is a collection of times, of which percentiles are wanted.
type Distribution struct {
	values []time.Duration
	sorted bool
}

// Add takes one more.
func (d *Distribution) Add(values ...time.Duration) {
	d.values = append(d.values, values...)
	d.sorted = false
}

// Join takes all of another one.
func (d *Distribution) Join(other *Distribution) { d.Add(other.values...) }

// Count is how many there are.
func (d *Distribution) Count() int { return len(d.values) }

// Percentile is the smallest value that at least the given share (0 to 1) of all values does not exceed (the nearest-rank method): always a value
// that was measured. It is 0 where there are none.
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

// Max is the largest value, 0 where there are none.
func (d *Distribution) Max() time.Duration { return d.Percentile(1) }

// Milliseconds is a time as a number of milliseconds, as lines give it.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
