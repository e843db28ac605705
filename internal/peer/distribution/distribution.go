// Package distribution collects durations in bounded memory and computes percentiles. A Distribution is owned by one
// goroutine at a time.
package distribution

import (
	"math/bits"
	"slices"
	"time"
)

// classBits sets the precision. Durations are counted in microseconds: each value below 2^(classBits+1) has its own
// class; larger values have 2^classBits classes per power of two. The middle of a class is within 1/256 = 0.4 % of
// every value in the class.
const classBits = 7

// Distribution is a set of durations. The zero value is the empty set.
type Distribution struct {
	classes []uint32
	count   uint64
	largest time.Duration
}

// Add adds a duration. A negative duration, for example of clocks that differ slightly, counts as zero.
func (d *Distribution) Add(v time.Duration) {
	v = max(v, 0)
	c := class(v)
	if c >= len(d.classes) {
		d.classes = append(d.classes, make([]uint32, c+1-len(d.classes))...)
	}
	d.classes[c]++
	d.count++
	d.largest = max(d.largest, v)
}

// Merge adds all durations of another distribution.
func (d *Distribution) Merge(other *Distribution) {
	if missing := len(other.classes) - len(d.classes); missing > 0 {
		d.classes = append(d.classes, make([]uint32, missing)...)
	}
	for c, n := range other.classes {
		d.classes[c] += n
	}
	d.count += other.count
	d.largest = max(d.largest, other.largest)
}

// Clone returns a copy with its own memory.
func (d *Distribution) Clone() Distribution {
	return Distribution{classes: slices.Clone(d.classes), count: d.count, largest: d.largest}
}

// Reset removes all durations and keeps the memory.
func (d *Distribution) Reset() {
	clear(d.classes)
	d.count, d.largest = 0, 0
}

// Count returns the number of durations.
func (d *Distribution) Count() uint64 { return d.count }

// Max returns the largest duration exactly, or 0 if there is none.
func (d *Distribution) Max() time.Duration { return d.largest }

// Quantile returns the smallest duration that at least the fraction q of all durations do not exceed (nearest rank),
// within 0.4 %. Quantile returns 0 if there is none.
func (d *Distribution) Quantile(q float64) time.Duration {
	rank := max(1, uint64(q*float64(d.count)+0.999999))
	for c, n := range d.classes {
		if uint64(n) >= rank {
			return min(middle(c), d.largest)
		}
		rank -= uint64(n)
	}
	return d.largest
}

// class returns the index of a duration's class.
func class(v time.Duration) int {
	us := uint64(v / time.Microsecond)
	shift := max(0, bits.Len64(us)-classBits-1)
	return shift<<classBits + int(us>>shift)
}

// middle returns the middle of a class.
func middle(c int) time.Duration {
	if c < 2<<classBits {
		return time.Duration(c) * time.Microsecond
	}
	shift := c>>classBits - 1
	low := uint64(c-shift<<classBits) << shift
	return time.Duration(low+1<<shift/2) * time.Microsecond
}
