package produce

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ball returns points on a sphere of a radius in metres, evenly spread and in an order independent of their positions.
func ball(points int, radius float64) *pointcloud.Cloud {
	cloud := &pointcloud.Cloud{}
	for i := range points {
		k := int(uint32(i) * 2654435761 >> 8 % uint32(points))
		y := 1 - 2*(float64(k)+0.5)/float64(points)
		sin, cos := math.Sincos(float64(k) * math.Pi * (3 - math.Sqrt(5)))
		flat := math.Sqrt(1 - y*y)
		cloud.Append([3]float32{float32(radius * flat * cos), float32(radius * y), float32(radius * flat * sin)},
			[3]uint8{uint8(i), 2, 3})
	}
	return cloud
}

func within(got, want int, part float64) bool {
	return math.Abs(float64(got-want)) <= part*float64(want)
}

// TestSizesFollowTheObject checks that the voxel size yields the wanted number of points, also when the object grows or
// the wanted number changes.
func TestSizesFollowTheObject(t *testing.T) {
	s := newSizing(1)
	var grid pointcloud.VoxelGrid
	var out pointcloud.Cloud
	frame := func(cloud *pointcloud.Cloud, points int) int {
		t.Helper()
		if err := s.aim(0, cloud, points); err != nil {
			t.Fatal(err)
		}
		if s.edge(0) == 0 {
			return cloud.Len()
		}
		if err := grid.Voxelize(cloud, &out, s.edge(0)); err != nil {
			t.Fatal(err)
		}
		s.correct(0, out.Len(), float64(points))
		return out.Len()
	}
	small, large := ball(20_000, 0.3), ball(20_000, 0.9)
	if n := frame(small, 2000); !within(n, 2000, 0.1) {
		t.Errorf("the first frame has %d points, expected 2,000", n)
	}
	for range 10 {
		frame(large, 2000)
	}
	if n := frame(large, 2000); !within(n, 2000, 0.05) {
		t.Errorf("an object of three times the size has %d points, expected 2,000", n)
	}
	if n := frame(large, 4000); !within(n, 4000, 0.2) {
		t.Errorf("the first of more has %d points, expected 4,000", n)
	}
	if n := frame(large, 20_000); n != 20_000 || s.edge(0) != 0 {
		t.Errorf("%d points are left of 20,000", n)
	}
	s.correct(0, 1, 1000) // all points were kept
	if n := frame(large, 4000); !within(n, 4000, 0.1) {
		t.Errorf("after all of them there are %d points, expected 4,000", n)
	}
}

// TestVoxelQualities checks that qualities with fewer than all points consist of voxels, also those with a bitrate,
// which they keep.
func TestVoxelQualities(t *testing.T) {
	c := config(t, 2, "low=25%,mid=2Mbit,high=100%")
	c.Voxels = true
	p, _, frame := measured(t, c)
	sink := newFakeSink()
	for i := range 20 {
		if o := p.encoder.encode(frame, time.Time{}, uint32(i), sink); o.err != nil || o.sent != 6 {
			t.Fatalf("%d frames sent, error %v", o.sent, o.err)
		}
	}
	had := [3]int{}
	for q := range had {
		for tile := range 2 {
			had[q] += p.encoder.points[p.encoder.track(job{tile, q})]
		}
	}
	wanted := p.encoder.config.Levels[1].Points
	if !within(had[0], 1000, 0.15) || !within(had[1], wanted, 0.15) || had[2] != 4000 {
		t.Errorf("got %d points, expected 1,000, %d and 4,000", had, wanted)
	}
	if rate := 2 * p.encoder.bitrates(30)[1].Bitrate; rate > volumetric.Bitrate(2.2e6) || rate < 1.7e6 {
		t.Errorf("both tiles take %v, expected about 2 Mbit/s", rate)
	}
	empty := &capture.Frame{}
	if o := p.encoder.encode(empty, time.Time{}, 99, sink); o.err != nil {
		t.Errorf("a frame without points: %v", o.err)
	}
}

func TestVoxelsAreNoDescriptions(t *testing.T) {
	c := config(t, 1, "a=50%,b=50%")
	c.Voxels, c.Mode = true, volumetric.ModeDescriptions
	if _, err := New(newFakeSource(10), c); !errors.Is(err, ErrConfig) {
		t.Errorf("got %v, expected ErrConfig", err)
	}
}
