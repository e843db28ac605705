package board

import (
	"cmp"
	"math"
	"slices"
)

// Corner is a corner between squares of the board.
type Corner struct {
	// Column and Row are the place on the board, as of Board.At.
	Column, Row int
	// U and V are the place in the picture, in pixels. The centre of the first pixel is at 0, 0.
	U, V float64
}

// Conditions of recognising the board.
const (
	// leastCells is the least number of squares whose corners are all seen and whose dots are clear.
	leastCells = 9
	// wrongCells is the greatest share of squares with a wrong dot, and aheadCells the least share by which the second
	// best place on the board has more of them.
	wrongCells = 0.08
	aheadCells = 0.2
	// unclear is the half width, in shares of the contrast, of the range in which a dot is neither seen nor absent.
	unclear = 0.12
)

// cell is a square of a lattice, by the node at its corner with the least coordinates.
type cell struct {
	at  node
	dot bool
}

// cells returns the squares with clear dots. place returns where the corner of a node is in the picture.
func (l lattice) cells(g *Gray, place func(node) (x, y float64)) []cell {
	type sample struct{ centre, edge float64 }
	samples := make(map[node]sample)
	var light, dark []float64
	for at := range l {
		corners := [4]node{at, at.plus(node{1, 0}), at.plus(node{0, 1}), at.plus(node{1, 1})}
		var x, y [4]float64
		whole := true
		for i, c := range corners {
			if _, ok := l[c]; !ok {
				whole = false
				break
			}
			x[i], y[i] = place(c)
		}
		if !whole {
			continue
		}
		value := func(u, v float64) float64 {
			a, b, c, d := (1-u)*(1-v), u*(1-v), (1-u)*v, u*v
			return g.at(a*x[0]+b*x[1]+c*x[2]+d*x[3], a*y[0]+b*y[1]+c*y[2]+d*y[3])
		}
		var s sample
		for _, u := range [3]float64{0.44, 0.5, 0.56} {
			for _, v := range [3]float64{0.44, 0.5, 0.56} {
				s.centre += value(u, v) / 9
			}
		}
		s.edge = (value(0.16, 0.5) + value(0.84, 0.5) + value(0.5, 0.16) + value(0.5, 0.84)) / 4
		samples[at] = s
		if at.even() {
			light = append(light, s.edge)
		} else {
			dark = append(dark, s.edge)
		}
	}
	if len(light) == 0 || len(dark) == 0 {
		return nil
	}
	slices.Sort(light)
	slices.Sort(dark)
	contrast := light[len(light)/2] - dark[len(dark)/2]
	var cells []cell
	for at, s := range samples {
		// The light differs over the board: the squares around the square have the other colour.
		other, around := 0.0, 0
		for _, d := range directions {
			if n, ok := samples[at.plus(d)]; ok {
				other += n.edge
				around++
			}
		}
		difference := contrast
		if around > 0 {
			difference = math.Abs(other/float64(around) - s.edge)
		}
		if difference < leastContrast {
			continue
		}
		share := math.Abs(s.centre-s.edge) / difference
		if math.Abs(share-0.45) > unclear {
			cells = append(cells, cell{at, share > 0.45})
		}
	}
	return cells
}

// turn returns a node turned by quarters from x to y.
func (n node) turn(quarters int) node {
	for range quarters {
		n = node{-n.y, n.x}
	}
	return n
}

// placement is a turn and a shift from a lattice to the board's corners.
type placement struct {
	quarters int
	shift    node
	wrong    int
}

// place returns the place of a lattice on the board, if one place explains the dots and no other does nearly.
func (b Board) place(l lattice, cells []cell) (placement, bool) {
	if len(cells) < leastCells {
		return placement{}, false
	}
	var all []placement
	for quarters := range 4 {
		low, high := node{math.MaxInt, math.MaxInt}, node{math.MinInt, math.MinInt}
		for at := range l {
			t := at.turn(quarters)
			low = node{min(low.x, t.x), min(low.y, t.y)}
			high = node{max(high.x, t.x), max(high.y, t.y)}
		}
		// The lattice may reach beyond the board by a wrong corner, and no further.
		for y := -1 - low.y; y+high.y <= b.Rows-1; y++ {
			for x := -1 - low.x; x+high.x <= b.Columns-1; x++ {
				p := placement{quarters: quarters, shift: node{x, y}}
				if b.judge(&p, cells) {
					all = append(all, p)
				}
			}
		}
	}
	if len(all) == 0 {
		return placement{}, false
	}
	slices.SortFunc(all, func(a, b placement) int { return cmp.Compare(a.wrong, b.wrong) })
	n := float64(len(cells))
	if float64(all[0].wrong) > wrongCells*n ||
		len(all) > 1 && float64(all[1].wrong-all[0].wrong) < aheadCells*n {
		return placement{}, false
	}
	return all[0], true
}

// judge counts the wrong squares of a placement. It returns false if the colours of the squares disagree.
func (b Board) judge(p *placement, cells []cell) bool {
	for _, c := range cells {
		// The opposite corners of the square, turned: the lower one is that of the square.
		first, last := c.at.turn(p.quarters), c.at.plus(node{1, 1}).turn(p.quarters)
		column, row := min(first.x, last.x)+p.shift.x+1, min(first.y, last.y)+p.shift.y+1
		if b.white(column, row) != c.at.even() {
			return false
		}
		if column < 0 || row < 0 || column >= b.Columns || row >= b.Rows || b.dot(column, row) != c.dot {
			p.wrong++
		}
	}
	return true
}
