package pointcloud

import (
	"errors"
	"fmt"
	"math"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ErrTiling reports that a tiling does not exist for a number of tiles or for a box.
var ErrTiling = errors.New("invalid tiling")

// maxTilingTiles is the number of tiles of the finest tiling.
const maxTilingTiles = 15

// TileCounts returns the numbers of tiles that NewTiling accepts, ascending.
func TileCounts() []int { return []int{1, 2, 4, 9, maxTilingTiles} }

// Tiling divides space into tiles by direction around a vertical axis and by height. The axis is at
// the centre of a box, and the heights are fractions of the box. Tiles extend beyond the box, so
// that every point of space is in exactly one tile. A Tiling is a value without state and is safe
// for concurrent use.
//
// Directions are in the object's own coordinates: front is +z, right is +x. The tiles are
//
//	 1  all
//	 2  front, back
//	 4  the quadrants front-right, front-left, back-right, back-left
//	 9  the quadrants of the lower 40 %, those of the next 40 %, and the top 20 %, the head of a standing person
//	15  five sectors of 72° for each third of the height, the first centred on the front, then to the right
//
// Quadrants are divided along x and z, so that the boxes of the first four tilings do not overlap.
type Tiling struct {
	count  int
	box    volumetric.BoundingBox
	center [3]float32
	// heights contains the y coordinates at which the second and the third layer begin.
	heights [2]float32
	// sectors contains the directions (x, z) at which the five sectors begin.
	sectors [5][2]float32
}

// NewTiling returns the tiling with the given number of tiles (see TileCounts) for an object within
// the box. The error wraps ErrTiling for other numbers, and for boxes that are not finite or have
// Max below Min.
func NewTiling(count int, box volumetric.BoundingBox) (Tiling, error) {
	if err := checkBox(box); err != nil {
		return Tiling{}, err
	}
	t := Tiling{count: count, box: box}
	for axis := range 3 {
		// Halved first: the sum of two large coordinates may overflow.
		t.center[axis] = box.Min[axis]/2 + box.Max[axis]/2
	}
	layers := [2]float64{1. / 3, 2. / 3}
	switch count {
	case 1, 2, 4, 15:
	case 9:
		layers = [2]float64{0.4, 0.8}
	default:
		return Tiling{}, fmt.Errorf("%w: %d tiles, expected one of %v", ErrTiling, count, TileCounts())
	}
	bottom, height := float64(box.Min[1]), float64(box.Max[1])-float64(box.Min[1])
	for i, fraction := range layers {
		t.heights[i] = float32(bottom + fraction*height)
	}
	for k := range t.sectors {
		angle := float64(k)*2*math.Pi/5 - math.Pi/5
		t.sectors[k] = [2]float32{float32(math.Sin(angle)), float32(math.Cos(angle))}
	}
	return t, nil
}

// checkBox returns an error if the box is not finite or has Max below Min.
func checkBox(box volumetric.BoundingBox) error {
	for axis := range 3 {
		if !finite(box.Min) || !finite(box.Max) || box.Max[axis] < box.Min[axis] {
			return fmt.Errorf(
				"%w: box is %v to %v, expected finite corners with Min below Max",
				ErrTiling,
				box.Min,
				box.Max,
			)
		}
	}
	return nil
}

// Len returns the number of tiles.
func (t *Tiling) Len() int { return t.count }

// Index returns the tile of a point.
func (t *Tiling) Index(p [3]float32) int {
	switch t.count {
	case 2:
		return t.back(p)
	case 4:
		return t.quadrant(p)
	case 9:
		tile := t.quadrant(p) | (1-below(p[1], t.heights[0]))<<2
		return tile + (8-tile)*(1-below(p[1], t.heights[1]))
	case 15:
		return 5*t.layer(p) + t.sector(p)
	default:
		return 0
	}
}

func (t *Tiling) back(p [3]float32) int { return below(p[2], t.center[2]) }

func (t *Tiling) quadrant(p [3]float32) int {
	return below(p[0], t.center[0]) | below(p[2], t.center[2])<<1
}

// layer returns the layer of a point, 0 to 2 from the bottom.
func (t *Tiling) layer(p [3]float32) int {
	return 2 - below(p[1], t.heights[0]) - below(p[1], t.heights[1])
}

// below returns 1 if v is less than limit, and otherwise 0. Compilers generate code without a
// branch, which real points would mispredict.
func below(v, limit float32) int {
	if v < limit {
		return 1
	}
	return 0
}

// sector finds the two neighbouring directions around the point from the signs of cross products,
// without an angle.
func (t *Tiling) sector(p [3]float32) int {
	x, z := p[0]-t.center[0], p[2]-t.center[2]
	after := 0
	for k, s := range t.sectors {
		after |= (1 - below(x*s[1], z*s[0])) << k
	}
	return int(sectorAfter[after])
}

// sectorAfter contains the sector for each set of directions (one bit each) that precede the point
// by up to half a turn: the sector whose beginning is in the set and whose end is not. If rounding
// leaves no such sector, the result is the last sector.
var sectorAfter = func() (table [32]uint8) {
	for after := range table {
		table[after] = 4
		for k := range 4 {
			if after>>k&3 == 1 {
				table[after] = uint8(k)
				break
			}
		}
	}
	return table
}()

// Learn implements Tiler. A tiling by direction does not depend on captured data.
func (t *Tiling) Learn(*Cloud) error { return nil }

// Assign implements Tiler.
func (t *Tiling) Assign(src *Cloud, begin int, into []uint8) {
	for i, p := range src.Positions[begin : begin+len(into)] {
		into[i] = uint8(t.Index(p))
	}
}

// Split copies every point of src to the cloud of the point's tile, like a Splitter but without reuse of working
// memory. tiles must have one cloud per tile; otherwise Split panics.
func (t *Tiling) Split(src *Cloud, tiles []Cloud) {
	if err := new(Splitter).Split(t, src, tiles); err != nil {
		panic("pointcloud: a tiling by direction needs nothing that a cloud may lack: " + err.Error())
	}
}
