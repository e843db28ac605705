package netem

import (
	"math"
	"math/bits"
	"time"
)

// Delays are counted in whole microseconds: exactly below 2^delayBits, and above in 2^delayBits classes per octave, so
// that the width of a class is at most 1/32 of its delay.
const (
	delayBits    = 5
	delayOctaves = 27 // to 2^32 µs, more than an hour
)

// DelayCounts is a histogram of delays with a precision of 3 %. The zero value is empty.
type DelayCounts struct {
	classes [(delayOctaves + 1) << delayBits]uint32
}

// Add counts one delay.
func (c *DelayCounts) Add(d time.Duration) {
	us := min(uint64(max(d.Microseconds(), 0)), math.MaxUint32)
	octave := max(bits.Len64(us)-delayBits-1, 0)
	c.classes[uint64(octave)<<delayBits+us>>octave]++
}

// Join adds the counts of other.
func (c *DelayCounts) Join(other *DelayCounts) {
	for i, n := range other.classes {
		c.classes[i] += n
	}
}

// Since returns the counts added since c was in the state earlier.
func (c *DelayCounts) Since(earlier *DelayCounts) DelayCounts {
	difference := *c
	for i := range difference.classes {
		difference.classes[i] -= earlier.classes[i]
	}
	return difference
}

// Count returns the number of counted delays.
func (c *DelayCounts) Count() uint64 {
	var count uint64
	for _, n := range c.classes {
		count += uint64(n)
	}
	return count
}

// Quantile returns the delay that the given share of the counted delays, 0 to 1, does not exceed, with an error of up
// to +3 %; 0 if there are none.
func (c *DelayCounts) Quantile(share float64) time.Duration {
	rank := max(uint64(math.Ceil(share*float64(c.Count()))), 1)
	var below uint64
	for i, n := range c.classes {
		if below += uint64(n); below >= rank {
			return classEnd(i)
		}
	}
	return 0
}

// classEnd returns the longest delay of a class.
func classEnd(class int) time.Duration {
	octave := max(class>>delayBits-1, 0)
	first := class - octave<<delayBits // common prefix of the values of a class, without the low octave bits
	return time.Duration((first+1)<<octave-1) * time.Microsecond
}
