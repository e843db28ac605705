// Package distribution collects durations in memory that does not grow with their number, and gives percentiles of
// them. A Distribution belongs to one goroutine at a time.
package distribution

import (
	"math/bits"
	"slices"
	"time"
)

// classBits sets the precision. Durations are counted in microseconds: each below 2^(classBits+1) on its own, larger
// ones in 2^classBits classes per power of two. The middle of a class is then within 1/256 = 0.4 % of what is in it.
const classBits = 7

// Distribution is a set of durations. The zero value is the empty one.
type Distribution struct {
	classes []uint32
	count   uint64
	largest time.Duration
}

// Add puts one duration in; those below zero, as of clocks that disagree a little, count as zero.
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

// Merge puts in all durations of another distribution.
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

// Clone is a copy with memory of its own.
func (d *Distribution) Clone() Distribution {
	return Distribution{classes: slices.Clone(d.classes), count: d.count, largest: d.largest}
}

// Reset empties the distribution and keeps its memory.
func (d *Distribution) Reset() {
	clear(d.classes)
	d.count, d.largest = 0, 0
}

// Count is how many durations were put in.
func (d *Distribution) Count() uint64 { return d.count }

// Max is the largest duration, exactly; 0 of none.
func (d *Distribution) Max() time.Duration { return d.largest }

// Quantile is the smallest duration that at least the fraction q of all do not exceed (nearest rank), within 0.4 %; 0
// of none.
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

// class is the index of a duration's class.
func class(v time.Duration) int {
	us := uint64(v / time.Microsecond)
	shift := max(0, bits.Len64(us)-classBits-1)
	return shift<<classBits + int(us>>shift)
}

// middle is the middle of a class.
func middle(c int) time.Duration {
	if c < 2<<classBits {
		return time.Duration(c) * time.Microsecond
	}
	shift := c>>classBits - 1
	low := uint64(c-shift<<classBits) << shift
	return time.Duration(low+1<<shift/2) * time.Microsecond
}
