package pointcloud

import (
	"fmt"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// octants is the number of octants.
const octants = 8

// OctantTiling divides space into eight tiles along the three planes through the centre of a box:
// the quadrants of Tiling, each with a lower and an upper half. Tiles extend beyond the box. An
// OctantTiling is a value without state and is safe for concurrent use.
type OctantTiling struct {
	quadrants Tiling
	middle    float32 // height of the plane between lower and upper tiles
}

// NewOctantTiling returns the tiling for an object within the box. The error wraps ErrTiling for
// boxes that are not finite or have Max below Min.
func NewOctantTiling(box volumetric.BoundingBox) (*OctantTiling, error) {
	quadrants, err := NewTiling(4, box)
	if err != nil {
		return nil, err
	}
	return &OctantTiling{quadrants: quadrants, middle: quadrants.center[1]}, nil
}

// Len returns 8.
func (t *OctantTiling) Len() int { return octants }

// Learn implements Tiler. Octants do not depend on captured data.
func (t *OctantTiling) Learn(*Cloud) error { return nil }

// Index returns the tile of a point: its quadrant, plus 4 in the upper half.
func (t *OctantTiling) Index(p [3]float32) int {
	return t.quadrants.quadrant(p) | (1-below(p[1], t.middle))<<2
}

// Assign implements Tiler.
func (t *OctantTiling) Assign(src *Cloud, begin int, into []uint8) {
	for i, p := range src.Positions[begin : begin+len(into)] {
		into[i] = uint8(t.Index(p))
	}
}

// Tiles returns the parts of the box that the tiles cover, with labels such as "front-left-high".
func (t *OctantTiling) Tiles() []volumetric.Tile {
	tiles := make([]volumetric.Tile, octants)
	for i, quadrant := range append(t.quadrants.Tiles(), t.quadrants.Tiles()...) {
		name := "low"
		if i < 4 {
			quadrant.Box.Max[1] = t.middle
		} else {
			quadrant.Box.Min[1], name = t.middle, "high"
		}
		tiles[i] = volumetric.Tile{Label: fmt.Sprintf("%s-%s", quadrant.Label, name), Box: quadrant.Box}
	}
	return tiles
}
