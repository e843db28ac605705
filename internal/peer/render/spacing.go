package render

import (
	"math"
	"math/bits"

	"github.com/volsfu/volsfu/pkg/pointcloud"
)

const (
	// pointsPerCell is the smallest mean number of points per occupied cell: with 4, a cell of the surface is empty by
	// chance with probability e^-4.
	pointsPerCell = 4
	// minCells and maxCells bound the number of cells along the longest edge. The number is a power of two.
	minCells, maxCells = 4, 64
	// slant is the mean number of cells that a surface of all directions cuts per cell area: the mean of |x|+|y|+|z|
	// over unit vectors.
	slant = 1.5
	// overlap is the ratio of the drawn width to the mean distance of points. A place of an upright wall is covered by
	// 2.4²/1.5 points. If the points are randomly chosen, a fraction e^-3.8 of all places is not covered.
	overlap = 2.4
)

// gauge measures the distance of the points of a cloud. The zero value is ready for use.
type gauge struct {
	seen [maxCells * maxCells * maxCells / 64]uint64
}

// width returns the width at which the points of a cloud cover the surface on which they lie, in the cloud's own
// metres. Each cloud has its own width, so that tiles of different qualities look alike.
//
// The area of the surface is that of the occupied cells of a grid. The finest grid is used whose occupied cells have
// enough points; a coarser one would include empty space at the edges of the surface.
func (g *gauge) width(cloud *pointcloud.Cloud) float32 {
	points := cloud.Len()
	if points < 2 {
		return 0
	}
	box := cloud.Bounds()
	edge := max(box.Max[0]-box.Min[0], box.Max[1]-box.Min[1], box.Max[2]-box.Min[2])
	if !(edge > 0) || edge > math.MaxFloat32/2 {
		return 0
	}
	cells := maxCells
	occupied := g.count(cloud, box.Min, edge, cells)
	for cells > minCells && occupied*pointsPerCell > points {
		cells /= 2
		occupied = g.count(cloud, box.Min, edge, cells)
	}
	cell := float64(edge) / float64(cells)
	area := float64(occupied) * cell * cell / slant
	return float32(overlap * math.Sqrt(area/float64(points)))
}

// count returns the number of occupied cells of a grid.
func (g *gauge) count(cloud *pointcloud.Cloud, corner [3]float32, edge float32, cells int) (occupied int) {
	seen := g.seen[:(cells*cells*cells+63)/64]
	clear(seen)
	scale, most := float32(cells)/edge, float32(cells-1)
	for _, p := range cloud.Positions {
		// NaN fails the comparison and is counted in the first cell.
		var at [3]int
		for axis, v := range p {
			if cell := (v - corner[axis]) * scale; cell > 0 {
				at[axis] = int(min(cell, most))
			}
		}
		i := (at[2]*cells+at[1])*cells + at[0]
		seen[i/64] |= 1 << (i % 64)
	}
	for _, word := range seen {
		occupied += bits.OnesCount64(word)
	}
	return occupied
}
