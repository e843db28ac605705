package synthetic

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestSamplesLieOnTheSurface(t *testing.T) {
	body := newBody(longHair)
	inwards := 0
	samples, _ := surface(body, 3000, 1)
	for _, s := range samples {
		if d, _ := body.distance(s.position); math.Abs(d) > 1.5*astray {
			t.Errorf("sample at %v is %g m from the surface", s.position, d)
		}
		if math.Abs(s.normal.length()-1) > 1e-6 || s.openness < 0 || s.openness > 1 {
			t.Errorf("sample at %v has normal %v and openness %g", s.position, s.normal, s.openness)
		}
		if d, _ := body.distance(s.position.add(s.normal.scale(0.002))); d < 0 {
			inwards++
		}
	}
	// In a fold, another surface may be in front of a point.
	if inwards > 15 {
		t.Errorf("%d of 3000 normals point inwards", inwards)
	}
}

// TestCellsHoldTheSurface compares the field of a cell with the complete field, and searches for
// surface points without a cell.
func TestCellsHoldTheSurface(t *testing.T) {
	body := newBody(shortHair)
	index := map[[3]int]*cell{}
	key := func(p vector) (k [3]int) {
		for axis := range 3 {
			k[axis] = int(math.Floor((p[axis] - region[0][axis]) / smallCube))
		}
		return k
	}
	all := cellsOf(body)
	middle := vector{smallCube / 2, smallCube / 2, smallCube / 2}
	for i := range all {
		index[key(all[i].corner.add(middle))] = &all[i]
	}
	random := rand.New(rand.NewPCG(1, 2))
	near, missing, different := 0, 0, 0
	for range 40_000 {
		var p vector
		for axis := range 3 {
			p[axis] = mix(region[0][axis], region[1][axis], random.Float64())
		}
		whole, _ := body.distance(p)
		if math.Abs(whole) > shell {
			continue
		}
		near++
		c := index[key(p)]
		if c == nil {
			missing++
		} else if part, _ := c.near.distance(p); math.Abs(part-whole) > 5e-4 {
			different++
		}
	}
	if near < 300 || missing > 2*near/1000 || different > 5*near/1000 {
		t.Errorf(
			"of %d places near the surface, %d have no cell and %d another distance in it",
			near,
			missing,
			different,
		)
	}
}

func TestSamplesKeepTheirDistance(t *testing.T) {
	const points = 3000
	body := newBody(shortHair)
	samples, _ := surface(body, points, 9)
	if len(samples) != points {
		t.Fatalf("%d samples, expected %d", len(samples), points)
	}
	// Divided into 3,000 points, 1.9 m² are 25 mm between neighbours, more on clothes, less on the
	// face.
	nearest := make([]float64, points)
	sum := 0.0
	for i := range samples {
		nearest[i] = math.Inf(1)
		for j := range samples {
			if i != j {
				nearest[i] = min(
					nearest[i],
					samples[i].position.sub(samples[j].position).length()*math.Sqrt(density(samples[i].owner)),
				)
			}
		}
		sum += nearest[i]
	}
	mean, clotted := sum/points, 0
	for _, d := range nearest {
		if d < mean/2 {
			clotted++
		}
	}
	// Independent random points would have 18 % (1 - exp(-π/16)).
	if clotted > points/50 {
		t.Errorf("%d of %d points are closer than half of the mean distance to their neighbour", clotted, points)
	}
}

func TestRoundCone(t *testing.T) {
	const length, r0, r1 = 3, 1, 0.5
	random := rand.New(rand.NewPCG(1, 3))
	for range 2000 {
		p := vector{8*random.Float64() - 3, 4*random.Float64() - 2, 4*random.Float64() - 2}
		expected := math.Inf(1)
		for step := range 3001 { // the hull is the union of the balls between the two
			w := float64(step) / 3000
			expected = min(expected, p.sub(vector{w * length, 0, 0}).length()-mix(r0, r1, w))
		}
		if got := roundCone(p, length, r0, r1); math.Abs(got-expected) > 1e-5 {
			t.Fatalf("distance of %v is %g, expected %g", p, got, expected)
		}
	}
}
