package depth

import (
	"fmt"
	"math"
)

// Cleaning says what of a depth image is error.
type Cleaning struct {
	// EdgeRatio: a step in depth between neighbouring pixels above this part of the nearer one is an edge.
	EdgeRatio float64
	// EdgeNeighbors: pixels with fewer of their 8 neighbours on their own surface are dropped as mixed by an edge; 0 keeps all.
	EdgeNeighbors int
	// MinBlobPixels: connected surfaces of fewer pixels are dropped as noise; 0 keeps all.
	MinBlobPixels int
}

// DefaultCleaning suits people within reach of an indoor depth camera.
//
// EdgeRatio: neighbouring pixels of a 70° wide, 512 pixels wide camera are 1/366 of the depth apart, so that a surface seen at 82° from its
// normal still rises by only 0.02 of the depth per pixel; the gap between an arm and the body behind it is larger.
// EdgeNeighbors: the corner pixel of a surface has 3 neighbours on it, the pixel of a straight rim 5, a pixel that mixes front and back
// hovers between both and has 0 to 2.
// MinBlobPixels: 150 pixels are a patch of 3 cm at 1 m, smaller than a hand.
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

// joint is the depths that lie on the same surface as one depth: those from lo to lo + span. None is 0.
type joint struct{ lo, span uint16 }

func (j joint) has(depth uint16) bool { return depth-j.lo <= j.span }

// newJoints makes the table for all depths: a neighbour is on the surface where their difference is at most this part of the nearer one. 65,536
// entries of 4 bytes stay in the processor's cache for the depths that occur, and save a division and a comparison of each of 8 neighbours.
func newJoints(ratio float64) []joint {
	joints := make([]joint, math.MaxUint16+1)
	for depth := 1; depth <= math.MaxUint16; depth++ {
		// A billionth forgives the rounding where the limit is a whole number of units.
		nearest := math.Ceil(float64(depth)/(1+ratio) - 1e-9)
		farthest := math.Floor(float64(depth)*(1+ratio) + 1e-9)
		joints[depth] = joint{uint16(nearest), uint16(min(farthest, math.MaxUint16) - nearest)}
	}
	joints[0] = joint{1, 0} // never asked for
	return joints
}
