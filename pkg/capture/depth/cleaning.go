package depth

import (
	"fmt"
	"math"
)

// Cleaning configures the removal of errors from a depth image.
type Cleaning struct {
	// EdgeRatio is the depth step between neighbouring pixels, relative to the nearer depth, above
	// which there is an edge.
	EdgeRatio float64
	// EdgeNeighbors is the minimum number of a pixel's 8 neighbours on the same surface. Pixels
	// with fewer are dropped because an edge mixed their depth; 0 keeps all.
	EdgeNeighbors int
	// MinBlobPixels is the minimum size of a connected surface in pixels. Smaller surfaces are
	// dropped as noise; 0 keeps all.
	MinBlobPixels int
}

// DefaultCleaning returns values for people within the range of an indoor depth camera.
//
// EdgeRatio: neighbouring pixels of a camera 70° and 512 pixels wide are 1/366 of the depth apart.
// A surface seen at 82° from its normal rises by only 0.02 of the depth per pixel; the gap between
// an arm and the body behind it is larger. EdgeNeighbors: the corner pixel of a surface has 3
// neighbours on the surface, a pixel on a straight border 5. A pixel that mixes front and back is
// between both and has 0 to 2. MinBlobPixels: 150 pixels are a patch of 3 cm at 1 m, smaller than a
// hand.
func DefaultCleaning() Cleaning {
	return Cleaning{EdgeRatio: 0.02, EdgeNeighbors: 3, MinBlobPixels: 150}
}

func (c Cleaning) validate() error {
	switch {
	case !(c.EdgeRatio > 0 && c.EdgeRatio <= 1):
		return fmt.Errorf("%w: edge ratio is %g, expected more than 0 and at most 1", ErrCleaning, c.EdgeRatio)
	case c.EdgeNeighbors < 0 || c.EdgeNeighbors > 8:
		return fmt.Errorf("%w: edge neighbours are %d, expected 0 to 8", ErrCleaning, c.EdgeNeighbors)
	case c.MinBlobPixels < 0:
		return fmt.Errorf("%w: smallest blob has %d pixels, expected 0 or more", ErrCleaning, c.MinBlobPixels)
	}
	return nil
}

// joint is the range of depths on the same surface as one depth: from lo to lo + span. The joint never contains 0.
type joint struct{ lo, span uint16 }

func (j joint) has(depth uint16) bool { return depth-j.lo <= j.span }

// newJoints returns the table for all depths. A neighbour is on the same surface if the difference
// of the depths is at most ratio times the nearer depth. The table has 65,536 entries of 4 bytes;
// the entries used stay in the processor's cache and save a division and a comparison for each of 8
// neighbours.
func newJoints(ratio float64) []joint {
	joints := make([]joint, math.MaxUint16+1)
	for depth := 1; depth <= math.MaxUint16; depth++ {
		// A billionth compensates rounding if the limit is a whole number of units.
		nearest := math.Ceil(float64(depth)/(1+ratio) - 1e-9)
		farthest := math.Floor(float64(depth)*(1+ratio) + 1e-9)
		joints[depth] = joint{uint16(nearest), uint16(min(farthest, math.MaxUint16) - nearest)}
	}
	joints[0] = joint{1, 0} // never used
	return joints
}
