package pointcloud

import "math"

// grid is what one worker found in the cells.
type grid struct {
	// slots are where the cells' sums stand, from 1; 0 is an empty cell.
	slots []int32
	cells []int32
	sums  []sums
}

// sums are of the points of a cell: places relative to its middle, in parts of its edge, and brightness relative to mid grey. Whole numbers have
// the same sum in any order, whatever the number of workers.
type sums struct {
	count       int32
	light       int32
	lightSquare int32
	place       [3]int32
	square      [3]int32
	product     [3]int32 // yz, xz, xy
}

// parts are how many of them a cell's edge has; partBits is the logarithm of that.
const (
	partBits = 8
	parts    = 1 << partBits
)

// reset empties the grid for a number of cells.
func (g *grid) reset(size int) {
	for _, cell := range g.cells {
		g.slots[cell] = 0
	}
	if cap(g.slots) < size {
		g.slots = make([]int32, size)
	}
	g.slots = g.slots[:size]
	g.cells, g.sums = g.cells[:0], g.sums[:0]
}

// sum gives the sums of a cell, new ones where there are none.
func (g *grid) sum(cell int32) *sums {
	if g.slots[cell] == 0 {
		g.cells, g.sums = append(g.cells, cell), append(g.sums, sums{})
		g.slots[cell] = int32(len(g.sums))
	}
	return &g.sums[g.slots[cell]-1]
}

// merge adds what another worker found.
func (g *grid) merge(other *grid) {
	for i, cell := range other.cells {
		s, o := g.sum(cell), &other.sums[i]
		s.count += o.count
		s.light += o.light
		s.lightSquare += o.lightSquare
		for axis := range 3 {
			s.place[axis] += o.place[axis]
			s.square[axis] += o.square[axis]
			s.product[axis] += o.product[axis]
		}
	}
}

// add adds a point.
func (s *sums) add(r [3]int32, light int32) {
	s.count++
	s.light += light
	s.lightSquare += light * light
	for axis, v := range r {
		s.place[axis] += v
		s.square[axis] += v * v
	}
	s.product[0] += r[1] * r[2]
	s.product[1] += r[0] * r[2]
	s.product[2] += r[0] * r[1]
}

// moments are the sums of several cells, relative to the middle of one of them.
type moments struct {
	count       int64
	light       int64
	lightSquare int64
	place       [3]int64
	square      [3]int64
	product     [3]int64
}

// add adds the points of a cell that is so many cells further along an axis.
func (m *moments) add(s *sums, axis int, away int64) {
	n := int64(s.count)
	m.count += n
	m.light += int64(s.light)
	m.lightSquare += int64(s.lightSquare)
	for a := range 3 {
		m.place[a] += int64(s.place[a])
		m.square[a] += int64(s.square[a])
		m.product[a] += int64(s.product[a])
	}
	away *= parts
	m.place[axis] += away * n
	m.square[axis] += 2*away*int64(s.place[axis]) + away*away*n
	// Products of the axis with each of the others stand where the third one does.
	second, third := (axis+1)%3, (axis+2)%3
	m.product[third] += away * int64(s.place[second])
	m.product[second] += away * int64(s.place[third])
}

// edge is the standard deviation of brightness as a part of a strong edge's, at most 1.
func (m *moments) edge() float64 {
	mean := float64(m.light) / float64(m.count)
	return min(1, math.Sqrt(max(0, float64(m.lightSquare)/float64(m.count)-mean*mean))/strongEdge)
}

// curvature is the part of the variance that is at right angles to the best plane (the surface variation of Pauly, Gross and Kobbelt 2002), over a
// ninth. With l the variances along the main axes, det / minors = l1·l2·l3 / (l1·l2 + l1·l3 + l2·l3) is the least of them where it is much less
// than the others, and a third of it, hence a ninth of the sum, where all are equal: no eigenvalue needs to be found.
func (m *moments) curvature() float64 {
	inverse := 1 / float64(m.count)
	var mean, c, p [3]float64
	for axis := range 3 {
		mean[axis] = float64(m.place[axis]) * inverse
	}
	for axis := range 3 {
		second, third := (axis+1)%3, (axis+2)%3
		c[axis] = float64(m.square[axis])*inverse - mean[axis]*mean[axis]
		p[axis] = float64(m.product[axis])*inverse - mean[second]*mean[third]
	}
	trace := c[0] + c[1] + c[2]
	minors := c[0]*c[1] - p[2]*p[2] + c[0]*c[2] - p[1]*p[1] + c[1]*c[2] - p[0]*p[0]
	determinant := c[0]*c[1]*c[2] + 2*p[0]*p[1]*p[2] - c[0]*p[0]*p[0] - c[1]*p[1]*p[1] - c[2]*p[2]*p[2]
	// Points on one line or in one place, of which rounding leaves a little.
	if !(minors > 1e-4*trace*trace) {
		return 0
	}
	return min(1, max(0, 9*determinant/(minors*trace)))
}
