package board

import (
	"cmp"
	"math"
	"slices"
)

// Detector finds a board in pictures.
type Detector struct {
	board Board
}

// NewDetector returns a detector of a board.
func NewDetector(b Board) *Detector { return &Detector{board: b} }

const (
	// levels is the number of sizes of a picture, each half of the one before, in which the board is searched: large
	// pictures can be blurred.
	levels = 3
	// leastSide is the least side of a picture in which the board is searched, in pixels.
	leastSide = 100
)

// Find returns the corners of the board in a picture, by rows and columns, or none if the board is not recognised: it
// is absent, less than about 3 × 3 of its squares are whole, its squares have less than about 10 pixels, or it is seen
// in a mirror.
func (d *Detector) Find(g *Gray) []Corner {
	var best []Corner
	scale := 1.0
	smooth := g.smooth(refineBlur)
	for level, at := 0, g; level < levels && min(at.Width, at.Height) >= leastSide; level, at = level+1, at.half() {
		found := saddles(at)
		for i := range found { // the places in the whole picture
			found[i].x, found[i].y = found[i].x*scale+(scale-1)/2, found[i].y*scale+(scale-1)/2
		}
		for _, l := range lattices(found) {
			if corners := d.corners(smooth, found, l); len(corners) > len(best) {
				best = corners
			}
		}
		if len(best) == d.board.Corners() {
			break
		}
		scale *= 2
	}
	slices.SortFunc(best, func(a, b Corner) int {
		return cmp.Or(cmp.Compare(a.Row, b.Row), cmp.Compare(a.Column, b.Column))
	})
	return best
}

// corners returns the corners of a lattice that is a part of the board, in a picture that was blurred by refineBlur.
func (d *Detector) corners(g *Gray, found []saddle, l lattice) []Corner {
	cells := l.cells(g, func(at node) (x, y float64) { return found[l[at]].x, found[l[at]].y })
	p, ok := d.board.place(l, cells)
	if !ok {
		return nil
	}
	var corners []Corner
	for at, i := range l {
		on := at.turn(p.quarters).plus(p.shift)
		if on.x < 0 || on.y < 0 || on.x >= d.board.Columns-1 || on.y >= d.board.Rows-1 {
			continue
		}
		step := math.Inf(1)
		for _, direction := range directions {
			if k, ok := l[at.plus(direction)]; ok {
				step = min(step, math.Hypot(found[k].x-found[i].x, found[k].y-found[i].y))
			}
		}
		if u, v, ok := g.refine(found[i].x, found[i].y, step); ok {
			corners = append(corners, Corner{on.x, on.y, u, v})
		}
	}
	return corners
}

const (
	// refineShare is the radius of the window around a corner, in steps between corners: the window has no dot and no
	// other corner. It has 3 to 12 pixels.
	refineShare  = 0.32
	leastRadius  = 3.0
	mostRadius   = 12.0
	refineSteps  = 20
	refineTarget = 0.002 // pixels
	// refineBlur is the standard deviation of the blur of the picture, in pixels. Between the pixels of a sharper
	// picture, gradients depend on the place of an edge in its pixel, which is an error of 0.1 pixels.
	refineBlur     = 1.0
	leastRoundness = 1e-3
)

// refine returns the exact place of a corner: the place to which the gradients of all pixels around are at right angles
// (W. Förstner and E. Gülch, "A fast operator for detection and precise location of distinct points, corners and
// centres of circular features", 1987). step is the distance to the nearest corner.
func (g *Gray) refine(x, y, step float64) (float64, float64, bool) {
	radius := min(max(refineShare*step, leastRadius), mostRadius)
	r := int(math.Ceil(radius))
	startX, startY := x, y
	for range refineSteps {
		if !g.inside(x, y, radius+2) {
			return 0, 0, false
		}
		var xx, xy, yy, bx, by float64
		for v := -r; v <= r; v++ {
			for u := -r; u <= r; u++ {
				dx, dy := float64(u), float64(v)
				weight := math.Exp(-(dx*dx + dy*dy) / (radius * radius / 2))
				gx := g.at(x+dx+1, y+dy) - g.at(x+dx-1, y+dy)
				gy := g.at(x+dx, y+dy+1) - g.at(x+dx, y+dy-1)
				xx, xy, yy = xx+weight*gx*gx, xy+weight*gx*gy, yy+weight*gy*gy
				bx += weight * gx * (gx*dx + gy*dy)
				by += weight * gy * (gx*dx + gy*dy)
			}
		}
		determinant := xx*yy - xy*xy
		if !(determinant > leastRoundness*(xx+yy)*(xx+yy)) {
			return 0, 0, false
		}
		u, v := (yy*bx-xy*by)/determinant, (xx*by-xy*bx)/determinant
		x, y = x+u, y+v
		if math.Hypot(x-startX, y-startY) > radius {
			return 0, 0, false
		}
		if math.Hypot(u, v) < refineTarget {
			break
		}
	}
	return x, y, g.symmetric(x, y, r)
}

// leastSymmetry is the least correlation of the pixels around a corner with the same pixels on the other side. Noise of
// a tenth of the contrast leaves 0.98. At a corner that is partly hidden, and whose place therefore is wrong, it is
// less.
const leastSymmetry = 0.93

// symmetric reports whether the picture around a corner is the same after half a turn.
func (g *Gray) symmetric(x, y float64, radius int) bool {
	var mean, count float64
	disc := func(visit func(value, opposite float64)) {
		for v := -radius; v <= radius; v++ {
			for u := -radius; u <= radius; u++ {
				if u*u+v*v <= radius*radius {
					visit(g.at(x+float64(u), y+float64(v)), g.at(x-float64(u), y-float64(v)))
				}
			}
		}
	}
	disc(func(value, _ float64) { mean, count = mean+value, count+1 })
	mean /= count
	var alike, all float64
	disc(func(value, opposite float64) {
		alike += (value - mean) * (opposite - mean)
		all += (value - mean) * (value - mean)
	})
	return alike > leastSymmetry*all
}
