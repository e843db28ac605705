package pointcloud

import "math"

// grid contains the sums that one worker computed for the cells.
type grid struct {
	// slots maps cells to sums, counted from 1; 0 is an empty cell.
	slots []int32
	cells []int32
	sums  []sums
}

// sums contains sums over the points of a cell: positions relative to the centre of the cell, in fractions of the edge,
// and brightness relative to mid grey. Sums of integers do not depend on the order, and therefore not on the number of
// workers.
type sums struct {
	count       int32
	light       int32
	lightSquare int32
	place       [3]int32
	square      [3]int32
	product     [3]int32 // yz, xz, xy
}

// parts is the number of position units per cell edge; partBits is its logarithm.
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

// sum returns the sums of a cell, which are created if necessary.
func (g *grid) sum(cell int32) *sums {
	if g.slots[cell] == 0 {
		g.cells, g.sums = append(g.cells, cell), append(g.sums, sums{})
		g.slots[cell] = int32(len(g.sums))
	}
	return &g.sums[g.slots[cell]-1]
}

// merge adds the sums of another worker.
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

// moments contains the sums of several cells, relative to the centre of one cell.
type moments struct {
	count       int64
	light       int64
	lightSquare int64
	place       [3]int64
	square      [3]int64
	product     [3]int64
}

// add adds the points of a cell at the distance away, in cells, along an axis.
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
	// The product of axis and second is stored at third, and the product of axis and third at
	// second.
	second, third := (axis+1)%3, (axis+2)%3
	m.product[third] += away * int64(s.place[second])
	m.product[second] += away * int64(s.place[third])
}

// edge returns the standard deviation of brightness relative to a strong edge, at most 1.
func (m *moments) edge() float64 {
	mean := float64(m.light) / float64(m.count)
	return min(1, math.Sqrt(max(0, float64(m.lightSquare)/float64(m.count)-mean*mean))/strongEdge)
}

// curvature returns the share of the variance that is orthogonal to the best plane (the surface
// variation of Pauly, Gross and Kobbelt 2002), scaled by nine. With the variances l along the main
// axes, det / minors = l1·l2·l3 / (l1·l2 + l1·l3 + l2·l3) is the smallest variance if it is much
// smaller than the others, and a third of it, therefore a ninth of the sum, if all are equal. No
// eigenvalue has to be computed.
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
	// The points are on a line or coincide, except for rounding.
	if !(minors > 1e-4*trace*trace) {
		return 0
	}
	return min(1, max(0, 9*determinant/(minors*trace)))
}
