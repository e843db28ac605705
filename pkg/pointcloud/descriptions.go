package pointcloud

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ErrDescriptions reports that a cloud cannot be split into the requested descriptions.
var ErrDescriptions = errors.New("invalid descriptions")

// block is the length of the repeated pattern. Shares that are multiples of 1/1000 are exact in a
// block.
const block = 4000

// DescriptionConfig configures the division of points into descriptions.
type DescriptionConfig struct {
	// Shares contains the relative sizes of the descriptions, in any unit: 60, 25 and 15 are 60, 25
	// and 15 % of the points.
	Shares []float64
	// Random selects a pseudo-random assignment, which is suitable for any order of points.
	// Otherwise descriptions are interleaved along the order, which spreads each more evenly if
	// neighbours in the order are neighbours in space, as in scans.
	Random bool
	// Seed is the seed of the random assignment. With the same seed, equal positions in the order
	// belong to the same description in every frame.
	Seed uint64
}

// Descriptions splits clouds into descriptions (multiple description coding by sampling): disjoint parts with given
// shares whose union is the cloud. Each description is a sample of the whole object. The descriptions that a receiver
// has form a denser sample when they are appended in any order (Cloud.AppendCloud). In any range from the beginning of
// a cloud, each description has its share within one point and 1/4000 of the range. Descriptions uses all processors
// and keeps working memory. One goroutine at a time uses a Descriptions.
type Descriptions struct {
	pattern pattern
	points  partition
}

// pattern assigns the points of a block to descriptions, in an order in which every beginning of
// the block has the right shares.
type pattern struct {
	parts  [block]uint8
	count  int
	random bool
	seed   uint64
}

// NewDescriptions returns a splitter. The error wraps ErrDescriptions if there are no shares or
// more than volumetric.MaxQualities, or if a share is not finite and above zero.
func NewDescriptions(config DescriptionConfig) (*Descriptions, error) {
	count := len(config.Shares)
	if count < 1 || count > volumetric.MaxQualities {
		return nil, fmt.Errorf("%w: %d descriptions, expected 1 to %d", ErrDescriptions, count, volumetric.MaxQualities)
	}
	sum := 0.0
	for i, s := range config.Shares {
		if !(s > 0) {
			return nil, fmt.Errorf("%w: share %d is %g, expected more than 0", ErrDescriptions, i, s)
		}
		sum += s
	}
	if sum-sum != 0 {
		return nil, fmt.Errorf("%w: shares add up to %g, expected a finite number", ErrDescriptions, sum)
	}
	wishes, quotas := make([]float64, count), make([]int, count)
	for i, s := range config.Shares {
		wishes[i] = s / sum * block
	}
	share(wishes, block, quotas)
	for i, quota := range quotas {
		if quota == 0 {
			return nil, fmt.Errorf(
				"%w: share %d is %g of %g, expected at least a %dth",
				ErrDescriptions,
				i,
				config.Shares[i],
				sum,
				block,
			)
		}
	}
	d := &Descriptions{pattern: pattern{count: count, random: config.Random, seed: config.Seed}}
	d.pattern.fill(quotas)
	return d, nil
}

// fill distributes the descriptions by smooth weighted round robin: the next point belongs to the
// description that is furthest behind its share.
func (t *pattern) fill(quotas []int) {
	behind := make([]int, len(quotas))
	for i := range t.parts {
		next := 0
		for part, quota := range quotas {
			behind[part] += quota
			if behind[part] > behind[next] {
				next = part
			}
		}
		behind[next] -= block
		t.parts[i] = uint8(next)
	}
}

// Len returns the number of descriptions.
func (d *Descriptions) Len() int { return d.pattern.count }

// Split copies every point of src to the cloud of its description, in the order of src. Earlier points of these clouds
// are dropped and the memory is reused. parts must have one cloud per description; otherwise Split panics.
func (d *Descriptions) Split(src *Cloud, parts []Cloud) {
	if len(parts) != d.Len() {
		panic(fmt.Sprintf("pointcloud: Split takes one cloud per description: got %d for %d", len(parts), d.Len()))
	}
	d.points.classify(src, d.Len(), &d.pattern)
	d.points.scatter(parts)
}

// Assign implements assigner.
func (t *pattern) Assign(src *Cloud, begin int, into []uint8) {
	for len(into) > 0 {
		number, from := begin/block, begin%block
		// The last block may be incomplete. The beginning of the pattern has the right shares, too.
		length := min(block, src.Len()-number*block)
		n := 0
		if t.random {
			drawn := t.draw(number, length)
			n = copy(into, drawn[from:length])
		} else {
			n = copy(into, t.parts[from:length])
		}
		into, begin = into[n:], begin+n
	}
}

// draw returns the pattern of a block in random order (Fisher–Yates shuffle).
func (t *pattern) draw(number, length int) [block]uint8 {
	parts := t.parts
	var random rand.PCG
	random.Seed(t.seed, uint64(number))
	for i := length - 1; i > 0; i-- {
		// The upper half of a random number as a fraction; the error is below block/2^32.
		j := random.Uint64() >> 32 * uint64(i+1) >> 32
		parts[i], parts[j] = parts[j], parts[i]
	}
	return parts
}
