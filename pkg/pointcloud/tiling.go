package pointcloud

import (
	"errors"
	"fmt"
	"math"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ErrTiling says that a tiling does not exist for a number of tiles, or not on a box.
var ErrTiling = errors.New("invalid tiling")

// maxTilingTiles is the number of tiles of the finest tiling.
const maxTilingTiles = 15

// TileCounts are the numbers of tiles that NewTiling takes, ascending.
func TileCounts() []int { return []int{1, 2, 4, 9, maxTilingTiles} }

// Tiling cuts space into tiles by direction around a vertical axis and by height. The axis stands in the middle of a box and the heights
// are fractions of it, but tiles reach beyond the box, so that every point of space is in exactly one tile. A Tiling is a value without
// state; any number of goroutines may use one.
//
// The directions are those of the object's own coordinates: front is +z, right is +x. The tiles are
//
//	 1  all
//	 2  front, back
//	 4  the quadrants front-right, front-left, back-right, back-left
//	 9  the quadrants of the lower 40 %, those of the 40 % above, and the top 20 %, which is the head of a standing person
//	15  five sectors of 72°, the first one centred on the front and then by way of the right, of each third of the height
//
// Quadrants are cut along x and z, so that the boxes of the first four tilings do not overlap.
type Tiling struct {
	count  int
	box    volumetric.BoundingBox
	center [3]float32
	// heights are the y at which the second and the third layer begin.
	heights [2]float32
	// sectors are the directions (x, z) at which the five sectors begin.
	sectors [5][2]float32
}

// NewTiling makes the tiling with that number of tiles (TileCounts) for an object within the box. Other numbers, and boxes that are not
// finite or have Max below Min, give an error around ErrTiling.
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

// checkBox tells whether a box is one.
func checkBox(box volumetric.BoundingBox) error {
	for axis := range 3 {
		if !finite(box.Min) || !finite(box.Max) || box.Max[axis] < box.Min[axis] {
			return fmt.Errorf("%w: box is %v to %v, expected finite corners with Min below Max", ErrTiling, box.Min, box.Max)
		}
	}
	return nil
}

// Len is the number of tiles.
func (t *Tiling) Len() int { return t.count }

// Index is the tile that the point is in.
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

// layer is 0 to 2 from the bottom.
func (t *Tiling) layer(p [3]float32) int {
	return 2 - below(p[1], t.heights[0]) - below(p[1], t.heights[1])
}

// below is 1 where v is less than limit, else 0; compilers make it without a branch, which real points would mispredict.
func below(v, limit float32) int {
	if v < limit {
		return 1
	}
	return 0
}

// sector finds the two neighbouring directions that the point lies mixedCell by the signs of cross products, without an angle.
func (t *Tiling) sector(p [3]float32) int {
	x, z := p[0]-t.center[0], p[2]-t.center[2]
	after := 0
	for k, s := range t.sectors {
		after |= (1 - below(x*s[1], z*s[0])) << k
	}
	return int(sectorAfter[after])
}

// sectorAfter is the sector for each set of directions (a bit each) that a point lies up to half a turn after: the one whose beginning is
// in the set and whose end is not. Whatever rounding does, the last sector takes what no other one does.
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

// Learn implements Tiler: a tiling by direction learns nothing.
func (t *Tiling) Learn(*Cloud) error { return nil }

// Assign implements Tiler.
func (t *Tiling) Assign(src *Cloud, begin int, into []uint8) {
	for i, p := range src.Positions[begin : begin+len(into)] {
		into[i] = uint8(t.Index(p))
	}
}

// Split puts every point of src into the cloud of its tile, as a Splitter does, which keeps the memory that it needs. It panics on another
// number of clouds than there are tiles.
func (t *Tiling) Split(src *Cloud, tiles []Cloud) {
	if err := new(Splitter).Split(t, src, tiles); err != nil {
		panic("pointcloud: a tiling by direction needs nothing that a cloud may lack: " + err.Error())
	}
}
