package render

import (
	"math"
	"math/bits"

	"github.com/volsfu/volsfu/pkg/pointcloud"
)

const (
	// pointsPerCell is how many points the cells that hold any should hold on average, so that cells of the surface are
	// rarely empty by chance: e^-4.
	pointsPerCell = 4
	// minCells and maxCells bound the cells along the longest edge, in powers of two.
	minCells, maxCells = 4, 64
	// slant is how many cells a surface of many directions cuts per cell's area: the mean of |x|+|y|+|z| over unit
	// vectors.
	slant = 1.5
	// overlap is how much wider than the mean distance points are drawn: 2.4²/1.5 points cover a place of an upright
	// wall, and of those that were chosen at random none does at e^-3.8 of all places.
	overlap = 2.4
)

// gauge measures how far apart the points of a cloud are. Its zero value is ready.
type gauge struct {
	seen [maxCells * maxCells * maxCells / 64]uint64
}

// width is how wide the points of a cloud have to be drawn, in the cloud's own metres, so that they cover the surface
// that they lie on. Each cloud has a width of its own, so that tiles of different qualities look alike.
//
// The surface's area is that of the cells of a grid that hold points. The finest grid counts whose cells hold enough of
// them: a coarser one would add what is empty around a surface's edges.
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

// count is how many cells of a grid hold points.
func (g *gauge) count(cloud *pointcloud.Cloud, corner [3]float32, edge float32, cells int) (occupied int) {
	seen := g.seen[:(cells*cells*cells+63)/64]
	clear(seen)
	scale, most := float32(cells)/edge, float32(cells-1)
	for _, p := range cloud.Positions {
		// What is not a number fails the comparison and is counted in the first cell.
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
