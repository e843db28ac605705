package pointcloud

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ahead looks along -z from 2 m in front of the middle of a person.
var ahead = Viewpoint{Position: [3]float32{0, 0.9, 2}, Forward: [3]float32{0, 0, -3}}

func TestRegion(t *testing.T) {
	view := FieldOfView{Angle: 90 * math.Pi / 180, Maxima: []float64{1, 0.5, 0.25}, Outside: 0.125}
	// From 0, looking along -z, regions end at 15, 30 and 45°.
	v := Viewpoint{Forward: [3]float32{0, 0, -1}}
	for _, c := range []struct {
		degrees float64
		want    int
	}{{0, 0}, {14.9, 0}, {15.1, 1}, {29.9, 1}, {30.1, 2}, {44.9, 2}, {45.1, 3}, {90, 3}, {180, 3}} {
		sin, cos := math.Sincos(c.degrees * math.Pi / 180)
		for _, turn := range []float64{0, 1, 2, 3, 4, 5} {
			side, up := math.Sincos(turn)
			place := [3]float32{float32(7 * sin * side), float32(7 * sin * up), float32(-7 * cos)}
			if got := view.Region(v, place); got != c.want {
				t.Errorf("%v° away from the gaze: region %d, want %d", c.degrees, got, c.want)
			}
		}
	}
	if got := view.Region(v, v.Position); got != 0 {
		t.Errorf("the eye's own place is in region %d, want 0", got)
	}
	box := volumetric.BoundingBox{Min: [3]float32{-1, -1, -3}, Max: [3]float32{1, 1, -1}}
	for _, c := range []struct {
		forward [3]float32
		want    float64
	}{{[3]float32{0, 0, -1}, 1}, {[3]float32{0.5, 0, -1}, 0.5}, {[3]float32{0.7, 0, -1}, 0.25},
		{[3]float32{0, 0, 1}, 0.125}} {
		if got := view.Limit(Viewpoint{Forward: c.forward}, box); got != c.want {
			t.Errorf("looking along %v: object's rate is %v, want %v", c.forward, got, c.want)
		}
	}
}

// TestRegionsKeepRatesAndBudget expects exact rates and an exact budget from any viewpoint.
func TestRegionsKeepRatesAndBudget(t *testing.T) {
	cloud := numbered(5, 10_000)
	random := rand.New(rand.NewPCG(1, 1))
	view := FieldOfView{Angle: 0.9, Maxima: []float64{1, 0.6, 0.3, 0.05}, Outside: 0.1}
	regions, err := NewRegions(view)
	if err != nil {
		t.Fatal(err)
	}
	var dst Cloud
	for range 25 {
		v := Viewpoint{
			Position: [3]float32{4*random.Float32() - 2, 2 * random.Float32(), 4*random.Float32() - 2},
			Forward:  [3]float32{random.Float32() - 0.5, random.Float32() - 0.5, random.Float32() - 0.5},
		}
		count := func(c *Cloud) (in [5]int) {
			for _, p := range c.Positions {
				in[view.Region(v, p)]++
			}
			return in
		}
		whole := count(cloud)
		most := [5]int{whole[0], whole[1] * 6 / 10, whole[2] * 3 / 10, whole[3] * 5 / 100, whole[4] / 10}
		sum := most[0] + most[1] + most[2] + most[3] + most[4]
		for _, budget := range []int{-5, 0, 1, 7, 1234, sum - 1, sum, sum + 1, 1 << 30} {
			got := regions.Sample(cloud, &dst, v, budget)
			want := min(sum, max(0, budget))
			list := numbers(t, cloud, &dst)
			if got != want || len(list) != want || !slices.IsSorted(list) || len(slices.Compact(list)) != want {
				t.Fatalf("budget %d of %d: %d points, want %d, each once", budget, sum, got, want)
			}
			for region, n := range count(&dst) {
				share := float64(most[region]) * float64(want) / float64(max(sum, 1))
				if n > most[region] || math.Abs(float64(n)-share) > 1 {
					t.Errorf(
						"budget %d: region %d has %d points, want %.1f within 1 and at most %d",
						budget,
						region,
						n,
						share,
						most[region],
					)
				}
			}
		}
	}
}

// TestRegionsAreSampledEvenly expects the region's rate in every part of a region, for a random
// order.
func TestRegionsAreSampledEvenly(t *testing.T) {
	cloud := randomCloud(6, 100_000)
	regions, err := NewRegions(FieldOfView{Angle: math.Pi, Maxima: []float64{0.25}})
	if err != nil {
		t.Fatal(err)
	}
	var dst Cloud
	regions.Sample(cloud, &dst, ahead, math.MaxInt)
	for i := range 9 {
		inside := func(p [3]float32) bool { return int(p[1]*5) == i }
		all, kept := 0, 0
		for _, p := range cloud.Positions {
			if inside(p) {
				all++
			}
		}
		for _, p := range dst.Positions {
			if inside(p) {
				kept++
			}
		}
		if want := float64(all) / 4; math.Abs(float64(kept)-want) > 5*math.Sqrt(want*0.75) {
			t.Errorf("slice %d keeps %d of %d points, want a quarter", i, kept, all)
		}
	}
}

func TestFieldOfViewErrors(t *testing.T) {
	nan := math.NaN()
	for _, view := range []FieldOfView{
		{}, {Angle: 1}, {Angle: -1, Maxima: []float64{1}}, {Angle: 7, Maxima: []float64{1}},
		{Angle: nan, Maxima: []float64{1}},
		{Angle: 1, Maxima: make([]float64, MaxRegions+1)}, {Angle: 1, Maxima: []float64{1.1}},
		{Angle: 1, Maxima: []float64{-0.1}},
		{Angle: 1, Maxima: []float64{nan}}, {Angle: 1, Maxima: []float64{1}, Outside: 2},
		{Angle: 1, Maxima: []float64{1}, Outside: nan},
	} {
		if _, err := NewRegions(view); !errors.Is(err, ErrView) {
			t.Errorf("%+v: got %v, want ErrView", view, err)
		}
	}
	view := DefaultFieldOfView()
	if err := view.Validate(); err != nil {
		t.Error(err)
	}
}

func TestRegionsReuseMemory(t *testing.T) {
	cloud := numbered(7, 12_500)
	steady(t, func(workers int) func() {
		regions, _ := NewRegions(DefaultFieldOfView())
		regions.points.workerGroup.most = workers
		var dst Cloud
		return func() { regions.Sample(cloud, &dst, ahead, 9000) }
	})
}

// TestRegionsOfRealCapture looks at the keyboard of a seated person and expects more points there
// than at the face.
func TestRegionsOfRealCapture(t *testing.T) {
	cloud := realCloud(t, "seated-human", "ply", "dkvfx_000.ply")
	box := cloud.Bounds()
	middle := [3]float32{(box.Min[0] + box.Max[0]) / 2, box.Min[1], (box.Min[2] + box.Max[2]) / 2}
	v := Viewpoint{Position: [3]float32{0, (box.Min[1] + box.Max[1]) / 2, 0}}
	for axis := range 3 {
		v.Forward[axis] = middle[axis] - v.Position[axis]
	}
	view := FieldOfView{Angle: 1, Maxima: []float64{1, 0.5, 0.2}, Outside: 0.05}
	regions, err := NewRegions(view)
	if err != nil {
		t.Fatal(err)
	}
	var dst Cloud
	got := regions.Sample(cloud, &dst, v, 15_000)
	var before, after [4]int
	for _, p := range cloud.Positions {
		before[view.Region(v, p)]++
	}
	for _, p := range dst.Positions {
		after[view.Region(v, p)]++
	}
	t.Logf("%d points by region %v, of %v", got, after, before)
	if got != 15_000 || before[0] == 0 || before[2] == 0 {
		t.Fatalf("%d points of regions with %v, want 15000 of several", got, before)
	}
	if near, far := float64(
		after[0],
	)/float64(
		before[0],
	), float64(
		after[2],
	)/float64(
		before[2],
	); math.Abs(
		near/far-5,
	) > 0.1 {
		t.Errorf("the middle keeps %.3f, the edge %.3f, want a fifth of that", near, far)
	}
}
