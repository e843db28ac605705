package pointcloud

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ErrDescriptions says that a cloud cannot be split into descriptions as asked.
var ErrDescriptions = errors.New("invalid descriptions")

// block is the length of the pattern that descriptions repeat: shares that are whole per mille come out exactly in it.
const block = 4000

// DescriptionConfig says how points are split.
type DescriptionConfig struct {
	// Shares are the parts of the points that the descriptions have, in any unit: 60, 25 and 15 are 60, 25 and 15 % of them.
	Shares []float64
	// Random draws which point goes where, which holds for any order of points; else descriptions are interleaved along the order, which spreads
	// each more evenly where neighbours in the order are neighbours in space, as in scans.
	Random bool
	// Seed is what is drawn. The same seed gives the points of the same places in the order to the same descriptions in every frame.
	Seed uint64
}

// Descriptions splits clouds into descriptions (multiple description coding by sampling): parts of the given shares that have no point in
// common and are the whole cloud together. Each is a sample of the whole object by itself, and the parts that a receiver has make a denser
// one, appended in any order (Cloud.AppendCloud). Of any middleOf from the beginning of a cloud each description has its share, within one
// point and 1/4000 of the middleOf. It works on all processors and keeps its working memory; one goroutine uses it at a time.
type Descriptions struct {
	pattern pattern
	points  partition
}

// pattern is which description each point of a block belongs to, in an order in which every beginning of it has the right shares.
type pattern struct {
	parts  [block]uint8
	count  int
	random bool
	seed   uint64
}

// NewDescriptions makes a splitter. No shares, more than volumetric.MaxQualities, and shares that are not above zero and finite give an error around
// ErrDescriptions.
func NewDescriptions(config DescriptionConfig) (*Descriptions, error) {
	count := len(config.Shares)
	if count < 1 || count > volumetric.MaxQualities {
		return nil, fmt.Errorf("%w: %d of them, expected 1 to %d", ErrDescriptions, count, volumetric.MaxQualities)
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
			return nil, fmt.Errorf("%w: share %d is %g of %g, expected at least a %dth", ErrDescriptions, i, config.Shares[i], sum, block)
		}
	}
	d := &Descriptions{pattern: pattern{count: count, random: config.Random, seed: config.Seed}}
	d.pattern.fill(quotas)
	return d, nil
}

// fill lays the parts out as a smooth weighted round robin: whoever is furthest behind its share comes next.
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

// Len is the number of descriptions.
func (d *Descriptions) Len() int { return d.pattern.count }

// Split puts every point of src into the cloud of its description, in src's order; earlier points of these clouds are dropped and their memory is
// used again. It takes as many clouds as there are descriptions, and panics on another number.
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
		// The last block may not be whole. Its beginning of the pattern has the right shares, too.
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

// draw is the pattern of a block in random order (the shuffle of Fisher and Yates).
func (t *pattern) draw(number, length int) [block]uint8 {
	parts := t.parts
	var random rand.PCG
	random.Seed(t.seed, uint64(number))
	for i := length - 1; i > 0; i-- {
		// The upper half of a random number as a fraction: off by less than block/2^32.
		j := random.Uint64() >> 32 * uint64(i+1) >> 32
		parts[i], parts[j] = parts[j], parts[i]
	}
	return parts
}
