package synthetic

import (
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
)

// sample is one point of the body's surface at rest.
type sample struct {
	position vector
	normal   vector
	openness float64 // 0 in a fold, 1 without occlusion of light
	owner    bone
	material material
}

// region is the box around the body at rest, with a margin.
var region = [2]vector{{-0.70, -0.02, -0.30}, {0.70, 1.80, 0.30}}

const (
	// The surface is searched in cubes of three sizes, each divided from the next larger. Smaller
	// cubes contain the surface more often, but need more lists of near solids.
	largeCube  = 0.050
	middleCube = 0.025
	smallCube  = 0.0125
	// shell is the maximum distance of a candidate from the surface before projection. A thicker
	// shell wastes fewer candidates. If the curvature radius of the surface is within twice the
	// shell, as on fingers, the density is uneven, which spacing compensates.
	shell = 0.006
	// astray is the maximum distance of a point from the surface after projection. The projection
	// fails if the gradient turns on the way, at sharp edges.
	astray = 0.001
	// lightReach is the radius around a point that is searched for occlusion.
	lightReach = 0.035
)

// cell is a small cube that may contain the surface.
type cell struct {
	corner vector
	near   field // solids that shape the surface in the cell
	around field // solids that occlude light
}

// cellsOf returns the small cubes that may contain the surface.
func cellsOf(body field) []cell {
	var out []cell
	visitCubes(body, region[0], region[1], largeCube, lightReach, func(corner vector, around field) {
		end := corner.add(vector{largeCube, largeCube, largeCube})
		visitCubes(around, corner, end, middleCube, 0, func(corner vector, near field) {
			end := corner.add(vector{middleCube, middleCube, middleCube})
			visitCubes(near, corner, end, smallCube, 0, func(corner vector, near field) {
				out = append(out, cell{corner, near, around})
			})
		})
	})
	return out
}

// visitCubes divides a box into cubes and visits the cubes that may contain the surface. The field
// passed on is valid in the cube and around it up to reach.
func visitCubes(body field, from, to vector, size, reach float64, visit func(corner vector, near field)) {
	halfDiagonal := size * math.Sqrt(3) / 2
	half := vector{size / 2, size / 2, size / 2}
	count := func(axis int) int { return int(math.Ceil((to[axis]-from[axis])/size - 1e-9)) }
	for i := range count(0) {
		for j := range count(1) {
			for k := range count(2) {
				corner := from.add(vector{float64(i) * size, float64(j) * size, float64(k) * size})
				if d, owner := body.distance(corner.add(half)); owner != nil && math.Abs(d) < halfDiagonal+shell {
					visit(corner, body.near(corner.add(half), halfDiagonal+shell+reach))
				}
			}
		}
	}
}

// density returns the density of points on a body part, relative to the head: people look at faces
// and hands.
func density(owner bone) float64 {
	switch owner {
	case head, jaw, neck:
		return 1
	case leftHand, leftFingers, rightHand, rightFingers:
		return 0.8
	}
	return 0.5
}

// surface distributes points over the body, in random order, and returns the points and the mean distance in metres of
// neighbours at a density of 1. Rounds of one candidate per cell continue until enough candidates keep their distance
// from the earlier points.
func surface(body field, points int, seed uint64) ([]sample, float64) {
	all := cellsOf(body)
	found := make([]sample, len(all))
	hit := make([]bool, len(all))
	var kept spacing
	area := 0.0
	for round := uint64(0); len(kept.samples) < points; round++ {
		random := rand.New(rand.NewPCG(seed, round))
		first := random.Uint64()
		inParallel(len(all), func(i int) {
			found[i], hit[i] = all[i].candidate(first, int64(i))
		})
		if round == 0 {
			area = weightedArea(found, hit)
			kept = newSpacing(points, area)
		}
		for _, i := range random.Perm(len(all)) {
			if hit[i] && kept.admits(&found[i]) {
				found[i].openness = all[i].openness(&found[i])
				if kept.add(&found[i]); len(kept.samples) == points {
					break
				}
			}
		}
	}
	rand.New(rand.NewPCG(seed, ^uint64(0))).Shuffle(points, func(i, j int) {
		kept.samples[i], kept.samples[j] = kept.samples[j], kept.samples[i]
	})
	return kept.samples, math.Sqrt(area / float64(points))
}

// candidate draws a random position in the cell and projects it onto the surface if it is near
// enough.
func (c *cell) candidate(round uint64, index int64) (sample, bool) {
	p := c.corner
	for axis := range 3 {
		p[axis] += smallCube * hash(round, uint64(axis), index)
	}
	d, owner := c.near.distance(p)
	if owner == nil || math.Abs(d) > shell || hash(round, 3, index) > density(owner.bone) {
		return sample{}, false
	}
	g := c.near.gradient(p)
	steep := g.length()
	// If distances are lower bounds, their slope is below 1 by the same factor.
	if steep < 0.1 || math.Abs(d) > shell*steep {
		return sample{}, false
	}
	for range 2 {
		p = p.sub(g.scale(d / (steep * steep)))
		if d, owner = c.near.distance(p); owner == nil {
			return sample{}, false
		}
	}
	if math.Abs(d) > astray {
		return sample{}, false
	}
	return sample{position: p, normal: g.scale(1 / steep), owner: owner.bone, material: owner.material}, true
}

// openness compares the distance of the surface from a position above the sample with the distance
// of a plane.
func (c *cell) openness(s *sample) float64 {
	const above = 0.8 * lightReach
	d, _ := c.around.distance(s.position.add(s.normal.scale(above)))
	return min(max(d/above, 0), 1)
}

// weightedArea estimates the body's surface in square metres, each part weighted by its density.
// Candidates are uniform in volume, and hits fill a shell on both sides of the surface.
func weightedArea(found []sample, hit []bool) float64 {
	hits := 0
	for i := range found {
		if hit[i] {
			hits++
		}
	}
	return float64(hits) * smallCube * smallCube * smallCube / (2 * shell)
}

// inParallel calls do for every index, on all processors.
func inParallel(count int, do func(index int)) {
	workers := runtime.GOMAXPROCS(0)
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for i := w * count / workers; i < (w+1)*count/workers; i++ {
				do(i)
			}
		})
	}
	group.Wait()
}
