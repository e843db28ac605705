package netem

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
)

// effect numbers the random streams of a link. The values define the meaning of a seed: new ones are added at the end.
type effect uint64

const (
	effectLoss effect = iota + 1
	effectBurst
	effectJitter
	effectReorder
	effectDuplicate
	// jitter of copies, separate from that of originals, so that duplication does not shift other draws
	effectCopyJitter
)

// newStream returns the random stream of one effect. The two halves of PCG's state are mixed from seed and effect,
// because streams of the same generator that start from nearby states are correlated.
func newStream(seed uint64, e effect) *rand.Rand {
	first := mix(seed ^ mix(uint64(e)))
	return rand.New(rand.NewPCG(first, mix(first)))
}

// mix spreads every bit of x over all bits: the output function of SplitMix64 (Steele, Lea and Flood, "Fast splittable
// pseudorandom number generators", 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// mixAddr derives a number from an address and a starting value, the same in every process.
func mixAddr(start uint64, a netip.Addr) uint64 {
	b := a.As16()
	return mix(mix(start^binary.BigEndian.Uint64(b[:8])) ^ binary.BigEndian.Uint64(b[8:]))
}
