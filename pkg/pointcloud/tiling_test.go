package pointcloud

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/allocations"
)

var person = volumetric.BoundingBox{Min: [3]float32{-0.4, 0, -0.3}, Max: [3]float32{0.4, 2, 0.5}}

func newTiling(t testing.TB, count int, box volumetric.BoundingBox) *Tiling {
	t.Helper()
	tiling, err := NewTiling(count, box)
	if err != nil {
		t.Fatal(err)
	}
	return &tiling
}

func TestTilingIndex(t *testing.T) {
	// Seen from the axis at x = 0, z = 0.1.
	cases := []struct {
		count int
		point [3]float32
		label string
	}{
		{1, [3]float32{0.1, 1, 0.2}, "all"},
		{1, [3]float32{99, -99, 99}, "all"},
		{2, [3]float32{0.1, 1, 0.2}, "front"},
		{2, [3]float32{0.1, 1, 0.1}, "front"},
		{2, [3]float32{0.1, 1, 0}, "back"},
		{4, [3]float32{0.1, 1, 0.2}, "front-right"},
		{4, [3]float32{-0.1, 1, 0.2}, "front-left"},
		{4, [3]float32{0.1, 1, 0}, "back-right"},
		{4, [3]float32{-0.1, 1, 0}, "back-left"},
		{4, [3]float32{-9, 1, -9}, "back-left"},
		{9, [3]float32{0.1, 0.1, 0.2}, "front-right-low"},
		{9, [3]float32{-0.1, 1, 0}, "back-left-middle"},
		{9, [3]float32{-0.1, 1.7, 0}, "top"},
		{9, [3]float32{-0.1, 17, 0}, "top"},
		{15, [3]float32{0, 0.1, 0.4}, "front-low"},
		{15, [3]float32{0.3, 1, 0.15}, "right-middle"},
		{15, [3]float32{0.1, 1.9, -0.2}, "back-right-high"},
		{15, [3]float32{-0.1, -1, -0.2}, "back-left-low"},
		{15, [3]float32{-0.3, 1, 0.15}, "left-middle"},
	}
	for _, c := range cases {
		tiling := newTiling(t, c.count, person)
		if got := tiling.Tiles()[tiling.Index(c.point)].Label; got != c.label {
			t.Errorf("%d tiles: %v is in %q, want %q", c.count, c.point, got, c.label)
		}
	}
}

// TestTilingIsPartition expects every point in exactly one tile, whose box contains the point if it
// is within the whole box.
func TestTilingIsPartition(t *testing.T) {
	boxes := []volumetric.BoundingBox{
		person,
		{Min: [3]float32{-3, -2, 5}, Max: [3]float32{-2.9, 0, 9}},
		{Min: [3]float32{0, 0, 0}, Max: [3]float32{0, 0, 0}},
		{Min: [3]float32{0, 0, 1}, Max: [3]float32{1, 1, 1}},
	}
	cloud := randomCloud(3, 5000)
	for _, box := range boxes {
		for axis := range 3 {
			// Points on the box's faces and on the planes between tiles.
			for _, v := range []float32{box.Min[axis], box.Max[axis], box.Min[axis]/2 + box.Max[axis]/2} {
				p := box.Min
				p[axis] = v
				cloud.Append(p, midGrey)
				p = box.Max
				p[axis] = v
				cloud.Append(p, midGrey)
			}
		}
		for _, count := range TileCounts() {
			tiling := newTiling(t, count, box)
			tiles := make([]Cloud, count)
			tiling.Split(cloud, tiles)
			all := new(Cloud)
			for i := range tiles {
				for _, p := range tiles[i].Positions {
					if tiling.Index(p) != i {
						t.Fatalf("%d tiles: %v was put into tile %d, and Index says %d", count, p, i, tiling.Index(p))
					}
					if inside(box, p, 0) && !inside(tiling.Boxes()[i], p, 1e-5) {
						t.Fatalf("%d tiles: %v is outside the box %v of its tile %d", count, p, tiling.Boxes()[i], i)
					}
				}
				all.Positions = append(all.Positions, tiles[i].Positions...)
				all.Colors = append(all.Colors, tiles[i].Colors...)
			}
			if !mapsEqual(points(all), points(cloud)) {
				t.Errorf(
					"%d tiles: together they have %d points, want the same %d as the cloud",
					count,
					all.Len(),
					cloud.Len(),
				)
			}
		}
	}
}

func mapsEqual[K comparable](a, b map[K]int) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return true
}

func inside(box volumetric.BoundingBox, p [3]float32, margin float32) bool {
	for axis, v := range p {
		if v < box.Min[axis]-margin || v > box.Max[axis]+margin {
			return false
		}
	}
	return true
}

// TestSectorBoxesAreTight expects the smallest boxes of sectors: points of the sector come near to
// each of their sides.
func TestSectorBoxesAreTight(t *testing.T) {
	tiling := newTiling(t, 15, person)
	boxes := tiling.Boxes()
	seen := make([]volumetric.BoundingBox, len(boxes))
	for i := range seen {
		inf := float32(math.Inf(1))
		seen[i] = volumetric.BoundingBox{Min: [3]float32{inf, inf, inf}, Max: [3]float32{-inf, -inf, -inf}}
	}
	const steps = 200
	for i := range steps + 1 {
		for j := range steps + 1 {
			for _, height := range []float32{0, 1. / 3, 0.34, 2. / 3, 0.67, 1} {
				p := [3]float32{-0.4 + 0.8*float32(i)/steps, height * 2, -0.3 + 0.8*float32(j)/steps}
				box := &seen[tiling.Index(p)]
				for axis, v := range p {
					box.Min[axis], box.Max[axis] = min(box.Min[axis], v), max(box.Max[axis], v)
				}
			}
		}
	}
	for i := range boxes {
		for _, axis := range []int{0, 2} {
			// The samples are 4 mm apart, and the sector's corners are oblique.
			if seen[i].Min[axis]-boxes[i].Min[axis] > 0.01 || boxes[i].Max[axis]-seen[i].Max[axis] > 0.01 {
				t.Errorf("tile %d (%s): box is %v, its points fill %v", i, tiling.label(i), boxes[i], seen[i])
			}
		}
	}
}

func TestNewTilingErrors(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, count := range []int{-1, 0, 3, 5, 16} {
		if _, err := NewTiling(count, person); !errors.Is(err, ErrTiling) {
			t.Errorf("%d tiles: got %v, want ErrTiling", count, err)
		}
	}
	for _, box := range []volumetric.BoundingBox{
		{Min: [3]float32{0, 1, 0}, Max: [3]float32{1, 0, 1}},
		{Min: [3]float32{nan, 0, 0}, Max: [3]float32{1, 1, 1}},
		{Min: [3]float32{0, 0, 0}, Max: [3]float32{1, inf, 1}},
	} {
		if _, err := NewTiling(4, box); !errors.Is(err, ErrTiling) {
			t.Errorf("box %v: got %v, want ErrTiling", box, err)
		}
	}
}

func TestSplitReusesMemory(t *testing.T) {
	cloud := randomCloud(4, 12_500)
	tiling := newTiling(t, 15, cloud.Bounds())
	tiles := make([]Cloud, 15)
	steady(t, func(most int) func() {
		splitter := Splitter{}
		splitter.points.workerGroup.most = most
		return func() { _ = splitter.Split(tiling, cloud, tiles) }
	})
}

// steady expects no allocations in repeated calls, with one worker and with several.
func steady(t *testing.T, with func(workers int) func()) {
	t.Helper()
	for _, workers := range []int{1, 3} {
		do := with(workers)
		do()
		do()
		if n := allocations.PerCall(10, do); n != 0 {
			t.Errorf("%d workers: %v allocations with used memory, want 0", workers, n)
		}
	}
}

func TestSplitPanicsOnWrongNumberOfClouds(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic for 3 clouds and 4 tiles")
		}
	}()
	newTiling(t, 4, person).Split(randomCloud(1, 1), make([]Cloud, 3))
}

// TestTilingSpreadsRealCapture expects that a person seen by one camera is not in one tile only.
func TestTilingSpreadsRealCapture(t *testing.T) {
	cloud := realCloud(t, "seated-human", "ply", "dkvfx_000.ply")
	for _, count := range TileCounts()[1:] {
		tiling := newTiling(t, count, cloud.Bounds())
		tiles := make([]Cloud, count)
		tiling.Split(cloud, tiles)
		var sizes []int
		for i := range tiles {
			sizes = append(sizes, tiles[i].Len())
		}
		t.Logf("%d tiles: %v", count, sizes)
		if largest := slices.Max(sizes); largest > cloud.Len()*9/10 {
			t.Errorf("%d tiles: one holds %d of %d points", count, largest, cloud.Len())
		}
	}
}

func BenchmarkSplit(b *testing.B) {
	cloud := randomCloud(1, 40_000)
	for _, count := range TileCounts() {
		b.Run(string(rune('0'+count/10))+string(rune('0'+count%10)), func(b *testing.B) {
			tiling := newTiling(b, count, cloud.Bounds())
			tiles := make([]Cloud, count)
			var splitter Splitter
			b.ReportAllocs()
			for b.Loop() {
				_ = splitter.Split(tiling, cloud, tiles)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(cloud.Len()), "ns/point")
		})
	}
}
