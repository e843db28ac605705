package pointcloud

import (
	"fmt"
	"math"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Part describes one tile of a LabelTiling.
type Part struct {
	// Name is the tile's label in signalling.
	Name string
	// Labels contains the labels of the points in the tile.
	Labels []uint16
}

// restName is the label of the tile for points of no part.
const restName = "rest"

// LabelTiling divides a cloud by the labels of its points: one tile for each part, and another tile for the rest, which
// contains points without label and points whose label belongs to no part. A LabelTiling learns boxes from the first
// frame and therefore belongs to one goroutine.
type LabelTiling struct {
	parts  []Part
	tiles  [math.MaxUint16 + 1]uint8 // by label
	learnt learnt
}

// NewLabelTiling returns the tiling for an object within the box. The error wraps ErrTiling if
// there are no parts, more than volumetric.MaxTiles tiles including the rest, or two parts with a
// common label.
func NewLabelTiling(parts []Part, box volumetric.BoundingBox) (*LabelTiling, error) {
	if len(parts) < 1 || len(parts) > volumetric.MaxTiles-1 {
		return nil, fmt.Errorf("%w: %d labelled parts, expected 1 to %d", ErrTiling, len(parts), volumetric.MaxTiles-1)
	}
	if err := checkBox(box); err != nil {
		return nil, err
	}
	t := &LabelTiling{learnt: learnt{whole: box}}
	rest := uint8(len(parts))
	for label := range t.tiles {
		t.tiles[label] = rest
	}
	for i, part := range parts {
		if len(part.Labels) == 0 {
			return nil, fmt.Errorf("%w: part %q has no labels, expected at least one", ErrTiling, part.Name)
		}
		for _, label := range part.Labels {
			if other := t.tiles[label]; other != rest {
				return nil, fmt.Errorf(
					"%w: label %d belongs to %q and to %q, expected one of them",
					ErrTiling,
					label,
					parts[other].Name,
					part.Name,
				)
			}
			t.tiles[label] = uint8(i)
		}
		t.parts = append(t.parts, Part{Name: part.Name})
	}
	return t, nil
}

// Len returns the number of parts plus one for the rest.
func (t *LabelTiling) Len() int { return len(t.parts) + 1 }

// Learn implements Tiler. The first frame must have labels.
func (t *LabelTiling) Learn(src *Cloud) error {
	if t.learnt.done() || src.Len() == 0 {
		return nil
	}
	if len(src.Labels) == 0 {
		return fmt.Errorf("%w: the cloud's points have no labels", ErrTiling)
	}
	t.learnt.learn(src, t.Len(), t)
	return nil
}

// Assign implements Tiler.
func (t *LabelTiling) Assign(src *Cloud, begin int, into []uint8) {
	if len(src.Labels) == 0 {
		for i := range into {
			into[i] = uint8(len(t.parts))
		}
		return
	}
	for i, label := range src.Labels[begin : begin+len(into)] {
		into[i] = t.tiles[label]
	}
}

// Tiles returns the tiles with the names of the parts; the last tile is "rest".
func (t *LabelTiling) Tiles() []volumetric.Tile {
	tiles := make([]volumetric.Tile, t.Len())
	for i := range tiles {
		name := restName
		if i < len(t.parts) {
			name = t.parts[i].Name
		}
		tiles[i] = volumetric.Tile{Label: name, Box: t.learnt.box(i)}
	}
	return tiles
}
