package synthetic

import (
	"math"
	"math/rand/v2"
	"testing"
)

func close3(a, b vector) bool { return a.sub(b).length() < 1e-9 }

func TestRotations(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 2))
	direction := func() vector {
		return vector{random.NormFloat64(), random.NormFloat64(),
			random.NormFloat64()}.unit()
	}
	for range 500 {
		q, r, v := rotation(direction(), 3*random.Float64()), rotation(direction(), random.Float64()), direction()
		if !close3(q.times(r).apply(v), q.apply(r.apply(v))) {
			t.Fatal("a product does not rotate like its factors")
		}
		if !close3(q.inverse().apply(q.apply(v)), v) {
			t.Fatal("the inverse does not undo")
		}
		if !close3(q.part(0.25).times(q.part(0.75)).apply(v), q.apply(v)) || !close3(q.part(0).apply(v), v) {
			t.Fatal("parts do not add up")
		}
		if !close3(q.mirrored().apply(v.mirrored()), q.apply(v).mirrored()) {
			t.Fatal("the mirrored rotation is not what a mirror shows")
		}
		pivot, m := direction(), about(direction(), r)
		if !close3(about(pivot, q).apply(pivot), pivot) ||
			!close3(about(pivot, q).after(m).apply(v), about(pivot, q).apply(m.apply(v))) {
			t.Fatal("motions do not compose")
		}
		along, aside := direction(), direction()
		if got := turning(along, aside, q.apply(along), q.apply(aside)); !close3(got.apply(v), q.apply(v)) {
			t.Fatal("turning does not find the rotation")
		}
	}
}

func TestMatrixStretchesThenMoves(t *testing.T) {
	m := about(vector{1, 2, 3}, rotation(vector{0, 1, 0}, math.Pi/2))
	m.shift = m.shift.add(vector{0, 10, 0})
	centre, stretch, p := vector{0, 1, 0}, vector{2, 1, 0.5}, vector{4, 5, 6}
	expected := m.apply(centre.add(p.sub(centre).times(stretch)))
	maps := m.matrix(centre, stretch)
	for row := range 3 {
		got := float64(maps[9+row])
		for axis := range 3 {
			got += float64(maps[3*row+axis]) * p[axis]
		}
		if math.Abs(got-expected[row]) > 1e-5 {
			t.Errorf("row %d gives %g, expected %g", row, got, expected[row])
		}
	}
}

func TestNoise(t *testing.T) {
	sum, previous := 0.0, wander(1, 2, -50)
	for i := range 100_000 {
		x := -50 + float64(i)/1000
		v := wander(1, 2, x)
		// smoothStep rises by at most 15/8 per unit, over a difference of at most 2.
		if v < -1 || v > 1 || math.Abs(v-previous) > 2*15./8/1000+1e-9 {
			t.Fatalf("wander jumps from %g to %g at %g", previous, v, x)
		}
		sum += v
		previous = v
	}
	if mean := sum / 100_000; math.Abs(mean) > 0.2 {
		t.Errorf("the mean of wander is %g", mean)
	}
	if wander(1, 2, 0.5) == wander(2, 2, 0.5) || wander(1, 2, 0.5) == wander(1, 3, 0.5) {
		t.Error("seeds or channels share their noise")
	}
	for range 1000 {
		p := vector{rand.Float64(), rand.Float64(), rand.Float64()}
		a, b := texture(3, 4, p, 0.1), texture(3, 4, p.add(vector{1e-6, 1e-6, 1e-6}), 0.1)
		if a < -1 || a > 1 || math.Abs(a-b) > 1e-3 {
			t.Fatalf("texture at %v is %g, and %g beside it", p, a, b)
		}
	}
}
