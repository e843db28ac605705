package board

import "math"

// node is a place in a lattice of corners: the number of squares from the first corner, along x and y.
type node struct{ x, y int }

func (n node) plus(m node) node { return node{n.x + m.x, n.y + m.y} }

// even reports whether the quadrant between +x and +y is bright, as at the first corner.
func (n node) even() bool { return (n.x+n.y)&1 == 0 }

var directions = [4]node{{1, 0}, {0, 1}, {-1, 0}, {0, -1}}

// lattice is a set of corners that continue each other, with the index of the saddle at each node.
type lattice map[node]int

const (
	// neighbourAngle is the greatest angle between an edge's direction at a corner and the next corner.
	neighbourAngle = 25 * math.Pi / 180
	// neighbourOff is the greatest distance of a corner from its predicted place, relative to a step: perspective and
	// lenses change a step by less.
	neighbourOff = 0.35
	// mostSeeds is the number of saddles from which a lattice is grown.
	mostSeeds = 40
	// leastNodes is the least number of corners of a lattice.
	leastNodes = 9
)

// lattices returns the lattices that grow from the strongest saddles, without those that are part of another.
func lattices(found []saddle) []lattice {
	used := make([]bool, len(found))
	var all []lattice
	seeds := 0
	for seed := range found {
		if used[seed] {
			continue
		}
		if seeds++; seeds > mostSeeds {
			break
		}
		l := grow(found, seed)
		l.clean(found)
		if len(l) < leastNodes {
			continue
		}
		for _, i := range l {
			used[i] = true
		}
		all = append(all, l)
	}
	return all
}

// grow returns the lattice around a saddle.
func grow(found []saddle, seed int) lattice {
	l := lattice{{}: seed}
	taken := map[int]bool{seed: true}
	for queue := []node{{}}; len(queue) > 0; queue = queue[1:] {
		for _, d := range directions {
			next := queue[0].plus(d)
			if _, ok := l[next]; ok {
				continue
			}
			if i, ok := l.next(found, taken, queue[0], d); ok {
				l[next], taken[i] = i, true
				queue = append(queue, next)
			}
		}
	}
	return l
}

// axis returns the direction of the edges along x or y at a node.
func (l lattice) axis(found []saddle, at node, alongX bool) float64 {
	c := found[l[at]]
	if alongX == at.even() {
		return c.first
	}
	return c.second
}

// next returns the saddle one step from a node.
func (l lattice) next(found []saddle, taken map[int]bool, at, d node) (int, bool) {
	from := found[l[at]]
	stepX, stepY, known := l.step(found, at, d)
	if !known {
		// Only the direction of the edges is known. Its sign is that of the axis at the first corner.
		sin, cos := math.Sincos(l.axis(found, at, d.y == 0))
		firstSin, firstCos := math.Sincos(l.axis(found, node{}, d.y == 0))
		sign := math.Copysign(float64(d.x+d.y), float64(d.x+d.y)*(sin*firstSin+cos*firstCos))
		stepX, stepY = sign*cos, sign*sin
	}
	length := math.Hypot(stepX, stepY)
	best, nearest := -1, math.Inf(1)
	for i := range found {
		if taken[i] {
			continue
		}
		x, y := found[i].x-from.x, found[i].y-from.y
		distance := math.Hypot(x, y)
		off := distance
		if known {
			off = math.Hypot(x-stepX, y-stepY)
			if off > neighbourOff*length {
				continue
			}
		} else if distance < 4 || x*stepX+y*stepY < math.Cos(neighbourAngle)*distance*length {
			continue
		}
		if off < nearest && continues(from, found[i]) {
			best, nearest = i, off
		}
	}
	return best, best >= 0
}

// step returns the expected step from a node, by the steps that are known around it.
func (l lattice) step(found []saddle, at, d node) (x, y float64, known bool) {
	back := node{-d.x, -d.y}
	aside := node{d.y, d.x}
	// The step behind continues; a step beside is parallel, and so is one diagonally behind.
	for _, pair := range [][2]node{
		{at.plus(back), at},
		{at.plus(aside), at.plus(aside).plus(d)},
		{at.plus(node{-aside.x, -aside.y}), at.plus(node{-aside.x, -aside.y}).plus(d)},
		{at.plus(aside).plus(back), at.plus(aside)},
		{at.plus(node{-aside.x, -aside.y}).plus(back), at.plus(node{-aside.x, -aside.y})},
	} {
		i, ok := l[pair[0]]
		k, also := l[pair[1]]
		if ok && also {
			return found[k].x - found[i].x, found[k].y - found[i].y, true
		}
	}
	return 0, 0, false
}

// continues reports whether two corners can be ends of an edge: bright and dark are exchanged, so that the first
// direction of one is the second one of the other.
func continues(a, b saddle) bool {
	return parallel(a.first, b.second) && parallel(a.second, b.first)
}

// parallel reports whether two directions differ by little, up to their sign.
func parallel(a, b float64) bool { return math.Abs(math.Remainder(a-b, math.Pi)) < neighbourAngle }

// unevenness is the greatest distance of a corner from the middle of its neighbours on both sides, relative to a step.
const unevenness = 0.2

// clean removes corners that are not between their neighbours, and corners without two neighbours.
func (l lattice) clean(found []saddle) {
	var wrong []node
	for at, i := range l {
		for _, d := range directions[:2] {
			a, ok := l[at.plus(d)]
			b, also := l[at.plus(node{-d.x, -d.y})]
			if !ok || !also {
				continue
			}
			x, y := (found[a].x+found[b].x)/2-found[i].x, (found[a].y+found[b].y)/2-found[i].y
			if math.Hypot(x, y) > unevenness*math.Hypot(found[a].x-found[b].x, found[a].y-found[b].y)/2 {
				wrong = append(wrong, at)
			}
		}
	}
	for _, at := range wrong {
		delete(l, at)
	}
	for changed := true; changed; {
		changed = false
		for at := range l {
			neighbours := 0
			for _, d := range directions {
				if _, ok := l[at.plus(d)]; ok {
					neighbours++
				}
			}
			if neighbours < 2 {
				delete(l, at)
				changed = true
			}
		}
	}
}
