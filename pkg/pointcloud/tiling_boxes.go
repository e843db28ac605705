package pointcloud

import (
	"math"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

var (
	halfNames     = [2]string{"front", "back"}
	quadrantNames = [4]string{"front-right", "front-left", "back-right", "back-left"}
	sectorNames   = [5]string{"front", "right", "back-right", "back-left", "left"}
	layerNames    = [3]string{"low", "middle", "high"}
)

// Boxes returns the parts of the tiling's box that the tiles cover, one per tile, for signalling. A sector has the
// smallest box around the sector, so that boxes of neighbours overlap.
func (t *Tiling) Boxes() []volumetric.BoundingBox {
	boxes := make([]volumetric.BoundingBox, t.count)
	for i := range boxes {
		boxes[i] = t.tileBox(i)
	}
	return boxes
}

// Tiles returns the boxes with labels that describe the location of each tile.
func (t *Tiling) Tiles() []volumetric.Tile {
	tiles := make([]volumetric.Tile, t.count)
	for i, box := range t.Boxes() {
		tiles[i] = volumetric.Tile{Label: t.label(i), Box: box}
	}
	return tiles
}

func (t *Tiling) label(i int) string {
	switch t.count {
	case 2:
		return halfNames[i]
	case 4:
		return quadrantNames[i]
	case 9:
		if i == 8 {
			return "top"
		}
		return quadrantNames[i%4] + "-" + layerNames[i/4]
	case 15:
		return sectorNames[i%5] + "-" + layerNames[i/5]
	default:
		return "all"
	}
}

func (t *Tiling) tileBox(i int) volumetric.BoundingBox {
	box := t.box
	switch t.count {
	case 2:
		t.cutDepth(&box, i)
	case 4:
		t.cutQuadrant(&box, i)
	case 9:
		if i < 8 {
			t.cutQuadrant(&box, i%4)
		}
		t.cutHeight(&box, i/4)
	case 15:
		t.cutSector(&box, i%5)
		t.cutHeight(&box, i/5)
	}
	return box
}

func (t *Tiling) cutDepth(box *volumetric.BoundingBox, back int) {
	if back == 1 {
		box.Max[2] = t.center[2]
	} else {
		box.Min[2] = t.center[2]
	}
}

func (t *Tiling) cutQuadrant(box *volumetric.BoundingBox, quadrant int) {
	t.cutDepth(box, quadrant>>1)
	if quadrant&1 == 1 {
		box.Max[0] = t.center[0]
	} else {
		box.Min[0] = t.center[0]
	}
}

func (t *Tiling) cutHeight(box *volumetric.BoundingBox, layer int) {
	if layer > 0 {
		box.Min[1] = t.heights[layer-1]
	}
	if layer < 2 {
		box.Max[1] = t.heights[layer]
	}
}

// cutSector reduces the box to the smallest box around the sector. Seen from above, the corners of the sector are the
// axis, the points at which the two edges of the sector leave the box, and the corners of the box between these points.
func (t *Tiling) cutSector(box *volumetric.BoundingBox, sector int) {
	corners := [][2]float32{{t.center[0], t.center[2]}, t.leave(sector), t.leave((sector + 1) % 5)}
	for _, x := range []float32{t.box.Min[0], t.box.Max[0]} {
		for _, z := range []float32{t.box.Min[2], t.box.Max[2]} {
			if t.sector([3]float32{x, 0, z}) == sector {
				corners = append(corners, [2]float32{x, z})
			}
		}
	}
	for side, axis := range [2]int{0, 2} {
		box.Min[axis], box.Max[axis] = corners[0][side], corners[0][side]
		for _, c := range corners {
			box.Min[axis] = min(box.Min[axis], c[side])
			box.Max[axis] = max(box.Max[axis], c[side])
		}
	}
}

// leave returns the point at which the first edge of a sector leaves the box, seen from above.
func (t *Tiling) leave(sector int) [2]float32 {
	direction := t.sectors[sector]
	center := [2]float32{t.center[0], t.center[2]}
	reach := math.Inf(1)
	for side, axis := range [2]int{0, 2} {
		half := float64(t.box.Max[axis]) - float64(center[side])
		if d := math.Abs(float64(direction[side])); d > 0 {
			reach = min(reach, half/d)
		}
	}
	var point [2]float32
	for side, axis := range [2]int{0, 2} {
		v := float32(float64(center[side]) + reach*float64(direction[side]))
		point[side] = min(max(v, t.box.Min[axis]), t.box.Max[axis])
	}
	return point
}
