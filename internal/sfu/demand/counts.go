package demand

import "github.com/volsfu/volsfu/internal/allocate"

// Need is the need of one slot for tracks of a publication.
type Need struct {
	// Tracks has the indices of up to two tracks that the slot takes, tile × qualities + quality; -1 for none: the
	// assigned track and, until its first frame, the track that the slot still forwards.
	Tracks [2]int
	// Near is the index of a tile of which the slot carries nothing at present, though its receiver may want the tile:
	// the tile is out of sight, or the link is too narrow. Near is -1 for none.
	Near int
}

// Nothing is the need of a slot that carries nothing.
var Nothing = Need{Tracks: [2]int{-1, -1}, Near: -1}

// counts sums the needs of all slots for one publication.
type counts struct {
	qualities int
	// taken has for each track, tile × qualities + quality, the number of slots that take the track.
	taken []int
	// near has for each tile the number of slots whose Near is the tile.
	near []int
}

func newCounts(tiles, qualities int) counts {
	return counts{qualities: qualities, taken: make([]int, tiles*qualities), near: make([]int, tiles)}
}

// add counts a need n times. n is negative when a need ends.
func (c *counts) add(need Need, n int) {
	for _, track := range need.Tracks {
		if track >= 0 {
			c.taken[track] += n
		}
	}
	if need.Near >= 0 {
		c.near[need.Near] += n
	}
}

// takenOf returns the qualities of a tile that at least one slot takes.
func (c *counts) takenOf(tile int) allocate.QualitySet {
	var set allocate.QualitySet
	for q := range c.qualities {
		if c.taken[tile*c.qualities+q] > 0 {
			set |= 1 << q
		}
	}
	return set
}
