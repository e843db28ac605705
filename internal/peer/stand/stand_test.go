package stand

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// person returns an upright column of points around a place, with a few points far below.
func person(x, low, top, z float32) [][3]float32 {
	var points [][3]float32
	for i := range 2000 {
		turn := float64(i)
		points = append(points, [3]float32{x + 0.2*float32(math.Sin(turn)), low + (top-low)*float32(i)/1999,
			z + 0.1*float32(math.Cos(turn))})
	}
	return append(points, [3]float32{x, low - 3, z}, [3]float32{x, low - 2, z})
}

// TestOf stands whole people and parts of people on the floor, with the front to the camera.
func TestOf(t *testing.T) {
	for name, test := range map[string]struct {
		x, low, top, z float32
		wantLow        float64
	}{
		"whole":          {0, -1.1, 0.65, -2, 0},
		"to the side":    {1.5, -1.2, 0.5, -2, 0},
		"above":          {0.3, 0.4, 2.1, -1, 0},
		"seated":         {-0.2, -0.43, 0.39, -1, 1.32 - 0.82},
		"at the camera":  {0, -0.4, 0.4, 0, 1.32 - 0.8},
		"behind, turned": {0.5, -0.9, 0.8, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			pose := Of(person(test.x, test.low, test.top, test.z))
			if err := pose.Validate(); err != nil {
				t.Fatal(err)
			}
			feet := pose.Apply([3]float64{float64(test.x), float64(test.low), float64(test.z)})
			if math.Hypot(feet[0], feet[2]) > 0.05 || math.Abs(feet[1]-test.wantLow) > 0.02 {
				t.Errorf("the lowest point is at %v, expected 0, %g, 0", feet, test.wantLow)
			}
			if camera := pose.Apply([3]float64{}); math.Hypot(float64(test.x), float64(test.z)) > 0.3 &&
				(camera[2] <= 0 || math.Abs(camera[0]) > 0.05*camera[2]) {
				t.Errorf("the camera is at %v, expected in front of the person", camera)
			}
		})
	}
	if pose := Of([][3]float32{{0, 1, 0}}); pose.Validate() != nil {
		t.Errorf("the motion of a single point is %v", pose)
	}
}

// fake is a source whose first frames have no points.
type fake struct {
	capture.Source
	info  capture.Info
	empty int
	err   error
	reads int
}

func (f *fake) Info() capture.Info { return f.info }

func (f *fake) Read(_ context.Context, frame *capture.Frame) error {
	f.reads++
	frame.Cloud.Reset()
	if f.reads > f.empty {
		for _, p := range person(0.4, -1.1, 0.6, -2) {
			frame.Cloud.Append(p, [3]uint8{})
		}
	}
	return f.err
}

func camera() *fake {
	return &fake{info: capture.Info{Cameras: make([]depth.Camera, 2),
		Box: volumetric.BoundingBox{Min: [3]float32{-0.2, -4.5, -2.5}, Max: [3]float32{0.8, 0.7, -1.5}}}}
}

// TestSource moves points, boxes and cameras alike.
func TestSource(t *testing.T) {
	under := camera()
	under.empty = 7
	s, err := NewSource(t.Context(), under)
	if err != nil {
		t.Fatal(err)
	}
	var frame capture.Frame
	if err := s.Read(t.Context(), &frame); err != nil {
		t.Fatal(err)
	}
	box := s.Info().Box
	for i, p := range person(0.4, -1.1, 0.6, -2) {
		got := frame.Cloud.Positions[i]
		want := s.Info().Cameras[1].Pose.Apply([3]float64{float64(p[0]), float64(p[1]), float64(p[2])})
		for axis := range 3 {
			if math.Abs(float64(got[axis])-want[axis]) > 1e-6 {
				t.Fatalf("point %d is at %v, expected %v", i, got, want)
			}
			if got[axis] < box.Min[axis] || got[axis] > box.Max[axis] {
				t.Fatalf("point %d at %v is not in %v", i, got, box)
			}
		}
	}
	if under.info.Cameras[0].Pose != (depth.Pose{}) {
		t.Error("the cameras of the other source were changed")
	}
	// The last two points are far below.
	body := pointcloud.Cloud{Positions: frame.Cloud.Positions[:2000]}
	if seen := body.Bounds(); math.Abs(float64(seen.Min[1])) > 0.02 {
		t.Errorf("the person is in %v, expected on the floor", seen)
	}
}

// TestNobody takes the camera to be level if nobody comes.
func TestNobody(t *testing.T) {
	under := camera()
	under.empty = 1000
	s, err := NewSource(t.Context(), under)
	if err != nil {
		t.Fatal(err)
	}
	if at := s.Info().Cameras[0].Pose.Apply([3]float64{0, 0, -1}); at != [3]float64{0, 1.2, -1} || under.reads != 30 {
		t.Errorf("a point before the camera is at %v after %d frames, expected 0, 1.2, -1 after 30", at, under.reads)
	}
	under.err = errors.New("broken")
	if _, err := NewSource(t.Context(), under); !errors.Is(err, under.err) {
		t.Errorf("%v, expected the error of the source", err)
	}
}

// TestApplies leaves sources without cameras and calibrated cameras alone.
func TestApplies(t *testing.T) {
	at := func(pose depth.Pose) depth.Camera { return depth.Camera{Pose: pose} }
	turned := at(depth.Pose{Translation: [3]float64{0, 1, 0}})
	still := at(depth.FromVision(depth.Pose{}))
	for name, test := range map[string]struct {
		cameras []depth.Camera
		want    bool
	}{
		"none":              {nil, false},
		"without a pose":    {[]depth.Camera{at(depth.Pose{})}, true},
		"at the origin":     {[]depth.Camera{still, still}, true},
		"one is calibrated": {[]depth.Camera{still, turned}, false},
	} {
		if got := Applies(capture.Info{Cameras: test.cameras}); got != test.want {
			t.Errorf("%s: %v, expected %v", name, got, test.want)
		}
	}
}
