package netem

import (
	"math"
	"math/bits"
	"time"
)

// Delays are counted in whole microseconds: singly below 2^delayBits, and above it in 2^delayBits classes per octave, so that a class is at most 1/32 wide.
const (
	delayBits    = 5
	delayOctaves = 27 // to 2^32 µs, more than an hour
)

// DelayCounts counts delays by their size, to 3 %. Its zero value has counted nothing.
type DelayCounts struct {
	classes [(delayOctaves + 1) << delayBits]uint32
}

// Add counts one delay.
func (c *DelayCounts) Add(d time.Duration) {
	us := min(uint64(max(d.Microseconds(), 0)), math.MaxUint32)
	octave := max(bits.Len64(us)-delayBits-1, 0)
	c.classes[uint64(octave)<<delayBits+us>>octave]++
}

// Since returns what was counted since c was as it is in earlier.
func (c *DelayCounts) Since(earlier *DelayCounts) DelayCounts {
	difference := *c
	for i := range difference.classes {
		difference.classes[i] -= earlier.classes[i]
	}
	return difference
}

// Count returns how many delays were counted.
func (c *DelayCounts) Count() uint64 {
	var count uint64
	for _, n := range c.classes {
		count += uint64(n)
	}
	return count
}

// Quantile returns the delay that the given share of those counted, 0 to 1, does not exceed, up to 3 % more; 0 if none were counted.
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

// classEnd is the longest delay of a class.
func classEnd(class int) time.Duration {
	octave := max(class>>delayBits-1, 0)
	first := class - octave<<delayBits // of the values that make a class, all but the low octave bits
	return time.Duration((first+1)<<octave-1) * time.Microsecond
}
