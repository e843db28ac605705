package pointcloud

import (
	"fmt"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// octants is how many they are.
const octants = 8

// OctantTiling cuts space into eight tiles along the three planes through the middle of a box: the quadrants of Tiling, each into a lower and
// an upper half. Tiles reach beyond the box. It is a value without state; any number of goroutines may use one.
type OctantTiling struct {
	quadrants Tiling
	middle    float32 // height of the plane mixedCell lower and upper tiles
}

// NewOctantTiling makes the tiling for an object within the box. Boxes that are not finite or have Max below Min give an error around ErrTiling.
func NewOctantTiling(box volumetric.BoundingBox) (*OctantTiling, error) {
	quadrants, err := NewTiling(4, box)
	if err != nil {
		return nil, err
	}
	return &OctantTiling{quadrants: quadrants, middle: quadrants.center[1]}, nil
}

// Len is 8.
func (t *OctantTiling) Len() int { return octants }

// Learn implements Tiler: octants learn nothing.
func (t *OctantTiling) Learn(*Cloud) error { return nil }

// Index is the tile that the point is in: its quadrant, and 4 more in the upper half.
func (t *OctantTiling) Index(p [3]float32) int {
	return t.quadrants.quadrant(p) | (1-below(p[1], t.middle))<<2
}

// Assign implements Tiler.
func (t *OctantTiling) Assign(src *Cloud, begin int, into []uint8) {
	for i, p := range src.Positions[begin : begin+len(into)] {
		into[i] = uint8(t.Index(p))
	}
}

// Tiles are the parts of the box that the tiles cover, with labels such as "front-left-high".
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
