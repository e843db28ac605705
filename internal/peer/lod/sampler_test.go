package lod

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/allocations"
)

// rows returns a cloud with the given number of points at each of the distances ahead of the origin, in turn.
func rows(points int, distances ...float32) *pointcloud.Cloud {
	cloud, labels := &pointcloud.Cloud{}, []uint16(nil)
	for i := range points {
		for row, distance := range distances {
			cloud.Append([3]float32{0.001 * float32(i%3), 0, -distance}, [3]uint8{uint8(row), uint8(i), 0})
			labels = append(labels, uint16(row+1))
		}
	}
	cloud.Labels = labels
	return cloud
}

// counts returns the number of points of each row.
func counts(cloud *pointcloud.Cloud, rows int) []int {
	n := make([]int, rows)
	for i, c := range cloud.Colors {
		n[c[0]]++
		if int(cloud.Labels[i]) != int(c[0])+1 {
			panic("a point has the label of another row")
		}
	}
	return n
}

func near(got, want, off int) bool { return got >= want-off && got <= want+off }

func TestFarPointsAreFewer(t *testing.T) {
	s, err := New(Config{Distance: 2, Least: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	cloud := rows(1000, 1, 4, 100)
	got := counts(s.Sample(cloud, pointcloud.Viewpoint{Forward: [3]float32{0, 0, -1}}), 3)
	if got[0] != 1000 || !near(got[1], 250, 40) || !near(got[2], 100, 40) {
		t.Errorf("%d points of three rows, expected 1000, 250 and 100", got)
	}
}

func TestPointsOutsideOfTheViewAreFewer(t *testing.T) {
	field := pointcloud.FieldOfView{Angle: math.Pi / 2, Maxima: []float64{1, 0.5}, Outside: 0.1}
	s, err := New(Config{Regions: &field})
	if err != nil {
		t.Fatal(err)
	}
	cloud := rows(1000, 2)
	for forward, want := range map[[3]float32]int{{0, 0, -1}: 1000, {0.5, 0, -1}: 500, {0, 0, 1}: 100} {
		if got := s.Sample(cloud, pointcloud.Viewpoint{Forward: forward}).Len(); got != want {
			t.Errorf("looking towards %v: %d points, expected %d", forward, got, want)
		}
	}
	// Both limits apply: the share of the view is taken from the points that the distance has left.
	if s, err = New(Config{Regions: &field, Distance: 1}); err != nil {
		t.Fatal(err)
	}
	if got := s.Sample(cloud, pointcloud.Viewpoint{Forward: [3]float32{0, 0, 1}}).Len(); !near(got, 25, 10) {
		t.Errorf("%d points, expected about 25", got)
	}
}

func TestConfig(t *testing.T) {
	if (Config{}).Reduces() || !(Config{Distance: 1}).Reduces() ||
		!(Config{Regions: &pointcloud.FieldOfView{}}).Reduces() {
		t.Error("expected that only regions and distances reduce clouds")
	}
	if _, err := New(Config{Distance: -1}); !errors.Is(err, pointcloud.ErrDetail) {
		t.Error(err)
	}
	if _, err := New(Config{Regions: &pointcloud.FieldOfView{}}); !errors.Is(err, pointcloud.ErrView) {
		t.Error(err)
	}
	s, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	if cloud := rows(3, 1); s.Sample(cloud, pointcloud.Viewpoint{}) != cloud {
		t.Error("expected the same cloud without reduction")
	}
}

// still is a source that always returns the same cloud.
type still struct{ cloud *pointcloud.Cloud }

func (s still) Info() capture.Info {
	return capture.Info{Box: volumetric.BoundingBox{Min: [3]float32{-1, -1, -9}, Max: [3]float32{1, 1, -1}}}
}
func (s still) Close() error { return nil }
func (s still) Read(_ context.Context, f *capture.Frame) error {
	f.Cloud.CopyFrom(s.cloud)
	return nil
}

func TestSourceForAnAudience(t *testing.T) {
	field := pointcloud.FieldOfView{Angle: math.Pi / 2, Maxima: []float64{1}, Outside: 0}
	whole := still{rows(1000, 2, 8)}
	s, err := NewSource(whole, Config{Regions: &field, Distance: 4, Least: 0}, [3]float32{})
	if err != nil {
		t.Fatal(err)
	}
	var frame capture.Frame
	for range 3 {
		if err := s.Read(t.Context(), &frame); err != nil {
			t.Fatal(err)
		}
		if got := counts(&frame.Cloud, 2); got[0] != 1000 || !near(got[1], 250, 40) {
			t.Errorf("%d points of two rows, expected 1000 and 250", got)
		}
	}
	if n := allocations.PerCall(20, func() { _ = s.Read(t.Context(), &frame) }); n > 1 {
		t.Errorf("%g allocations per frame, expected only the one of the test", n)
	}
	if v := Facing([3]float32{0, 0, -5}, whole.Info().Box); v.Forward != [3]float32{0, 0, -1} {
		t.Errorf("a viewer at the centre looks towards %v", v.Forward)
	}
	if _, err := NewSource(whole, Config{Distance: -1}, [3]float32{}); !errors.Is(err, pointcloud.ErrDetail) {
		t.Error(err)
	}
}
