package synthetic

import (
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// small is a figure shared by the tests that only read it.
var small = sync.OnceValue(func() *Figure {
	figure, err := New(Config{Points: 4000})
	if err != nil {
		panic("4000 points are within the limits: " + err.Error())
	}
	return figure
})

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func TestNewRefusesAbsurdNumbers(t *testing.T) {
	for _, points := range []int{math.MinInt, -1, 0, MaxPoints + 1, math.MaxInt} {
		if _, err := New(Config{Points: points}); !errors.Is(err, ErrConfig) {
			t.Errorf("%d points: %v", points, err)
		}
	}
}

func TestFrameHasTheNumberOfPoints(t *testing.T) {
	var cloud pointcloud.Cloud
	for _, points := range []int{1, 5000} {
		figure, err := New(Config{Points: points, Seed: -7})
		if err != nil {
			t.Fatal(err)
		}
		figure.At(seconds(1), &cloud)
		if figure.Points() != points || cloud.Len() != points || len(cloud.Colors) != points {
			t.Errorf("%d points: %d positions and %d colours", points, cloud.Len(), len(cloud.Colors))
		}
	}
}

func TestFrameIsAPureFunction(t *testing.T) {
	again, err := New(Config{Points: 4000})
	if err != nil {
		t.Fatal(err)
	}
	other, err := New(Config{Points: 4000, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	frame := func(f *Figure, at float64) pointcloud.Cloud {
		var cloud pointcloud.Cloud
		f.At(seconds(at), &cloud)
		return cloud
	}
	first := frame(small(), 12.3)
	frame(small(), 99) // a frame in between has no effect
	for _, f := range []*Figure{small(), again} {
		if cloud := frame(
			f,
			12.3,
		); !slices.Equal(cloud.Positions, first.Positions) ||
			!slices.Equal(cloud.Colors, first.Colors) {
			t.Error("seed, points and time are the same, the frame is not")
		}
	}
	if cloud := frame(small(), 12.4); slices.Equal(cloud.Positions, first.Positions) {
		t.Error("nothing moved within 0.1 s")
	}
	if cloud := frame(
		other,
		12.3,
	); slices.Equal(cloud.Positions, first.Positions) ||
		slices.Equal(cloud.Colors, first.Colors) {
		t.Error("another seed gave the same person")
	}
}

func TestFrameIsAnUprightPersonInTheBox(t *testing.T) {
	box := Box()
	var cloud pointcloud.Cloud
	for seed := range uint64(5) {
		figure := *small()
		figure.seed = seed // the motion of another person
		for at := -20.0; at < 400; at += 1.7 {
			figure.At(seconds(at), &cloud)
			bounds := cloud.Bounds()
			for axis := range 3 {
				if bounds.Min[axis] < box.Min[axis] || bounds.Max[axis] > box.Max[axis] {
					t.Fatalf("seed %d at %g s: %v is not within %v", seed, at, bounds, box)
				}
			}
			if height := bounds.Max[1]; height < 1.70 || height > 1.80 {
				t.Errorf("seed %d at %g s: %g m tall", seed, at, height)
			}
			if floor := bounds.Min[1]; floor < -0.003 || floor > 0.01 {
				t.Errorf("seed %d at %g s: the lowest point is at %g m", seed, at, floor)
			}
		}
	}
}

func TestAtDoesNotAllocate(t *testing.T) {
	var cloud pointcloud.Cloud
	small().At(0, &cloud)
	frame := 0
	if allocations := testing.AllocsPerRun(100, func() {
		frame++
		small().At(time.Duration(frame)*33*time.Millisecond, &cloud)
	}); allocations > 0 {
		t.Errorf("%g allocations per frame", allocations)
	}
}

func TestPrefixAndStrideAreEvenSamples(t *testing.T) {
	var cloud pointcloud.Cloud
	figure := small()
	figure.At(0, &cloud)
	n := cloud.Len()
	// The classes are slices of the height, divided into left and right.
	part := func(p [3]float32) int { return 2*int(p[1]*5) + int(math.Float32bits(p[0])>>31) }
	var all [20]float64
	for _, p := range cloud.Positions {
		all[part(p)]++
	}
	for name, pick := range map[string]func(i int) int{
		"prefix":   func(i int) int { return i },
		"suffix":   func(i int) int { return n - 1 - i },
		"stride 4": func(i int) int { return 4 * i },
	} {
		var sample [20]float64
		for i := range n / 4 {
			sample[part(cloud.Positions[pick(i)])]++
		}
		for i := range all {
			if expected := all[i] / 4; math.Abs(sample[i]-expected) > 6*math.Sqrt(expected*0.75)+1 {
				t.Errorf("%s: part %d has %g points, expected about %g", name, i, sample[i], expected)
			}
		}
	}
}

func TestFaceShowsFeatures(t *testing.T) {
	figure, err := New(Config{Points: 40_000})
	if err != nil {
		t.Fatal(err)
	}
	var open, closed pointcloud.Cloud
	for at30 := 0; open.Len() == 0 || closed.Len() == 0; at30++ {
		into := &open
		if blinks(0, float64(at30)/30) {
			into = &closed
		}
		figure.At(time.Duration(at30)*time.Second/30, into)
	}
	within := func(box volumetric.BoundingBox) (colors [][3]uint8) {
		for i, p := range figure.rest {
			if p[0] >= box.Min[0] && p[0] <= box.Max[0] && p[1] >= box.Min[1] && p[1] <= box.Max[1] &&
				p[2] >= box.Min[2] &&
				p[2] <= box.Max[2] {
				colors = append(colors, open.Colors[i])
			}
		}
		return colors
	}
	count := func(colors [][3]uint8, is func(r, g, b int) bool) (found int) {
		for _, c := range colors {
			if is(int(c[0]), int(c[1]), int(c[2])) {
				found++
			}
		}
		return found
	}
	eyes := within(volumetric.BoundingBox{Min: [3]float32{-0.05, 1.61, 0.06}, Max: [3]float32{0.05, 1.65, 0.12}})
	if white := count(eyes, func(r, g, b int) bool { return r > 140 && b > r-20 }); white < 4 {
		t.Errorf("%d white points around the eyes", white)
	}
	if blue := count(eyes, func(r, _, b int) bool { return b > r+20 }); blue < 4 {
		t.Errorf("%d points of the irises", blue)
	}
	lips := within(volumetric.BoundingBox{Min: [3]float32{-0.02, 1.555, 0.07}, Max: [3]float32{0.02, 1.575, 0.12}})
	if red := count(lips, func(r, g, b int) bool { return r > g*3/2 }); red < 8 {
		t.Errorf("%d red points around the mouth", red)
	}
	back := within(volumetric.BoundingBox{Min: [3]float32{-0.1, 1.62, -0.2}, Max: [3]float32{0.1, 1.8, -0.04}})
	if dark := count(back, func(r, g, b int) bool { return r+g+b < 200 }); len(back) == 0 || dark < len(back)*95/100 {
		t.Errorf("%d of %d points at the back of the head are hair", dark, len(back))
	}
	changed := 0
	for i := range open.Colors {
		if open.Colors[i] != closed.Colors[i] {
			changed++
		}
	}
	if changed == 0 || changed != len(figure.eyes) {
		t.Errorf("a blink changes %d colours, expected those of %d points of the eyes", changed, len(figure.eyes))
	}
}

func benchmarkAt(b *testing.B, points int) {
	figure, err := New(Config{Points: points})
	if err != nil {
		b.Fatal(err)
	}
	var cloud pointcloud.Cloud
	b.ReportAllocs()
	for frame := 0; b.Loop(); frame++ {
		figure.At(time.Duration(frame)*time.Second/30, &cloud)
	}
}

func BenchmarkAt40k(b *testing.B) { benchmarkAt(b, 40_000) }

func BenchmarkAt1M(b *testing.B) { benchmarkAt(b, 1_000_000) }

func BenchmarkNew40k(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := New(DefaultConfig()); err != nil {
			b.Fatal(err)
		}
	}
}
