package main

import (
	"bytes"
	"context"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/capture/realsense"
	"github.com/volsfu/volsfu/pkg/capture/realsense/rstest"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/test/wait"
)

// pixels returns the points of a cloud by the pixel of the camera that sees them.
func pixels(t *testing.T, camera *depth.Camera, cloud *pointcloud.Cloud) map[[2]int]int {
	t.Helper()
	at := make(map[[2]int]int)
	for i, p := range cloud.Positions {
		far := -float64(p[2])
		u, v, ok := camera.Project(float64(p[0])/far, -float64(p[1])/far)
		if !ok {
			t.Fatalf("point %v is in no pixel", p)
		}
		at[[2]int{int(math.Round(u)), int(math.Round(v))}] = i
	}
	if len(at) != cloud.Len() {
		t.Fatalf("%d points in %d pixels", cloud.Len(), len(at))
	}
	return at
}

// watchFor watches until the given number of frames have been shown, and returns them.
func (s *onstage) watchFor(frames int) []pointcloud.Cloud {
	s.t.Helper()
	dir := s.t.TempDir()
	ctx, stop := context.WithCancel(s.t.Context())
	defer stop()
	watched := make(chan error, 1)
	go func() { watched <- s.command(ctx, "watch --identity bob --save "+dir, io.Discard) }()
	saved := func() []string {
		names, err := filepath.Glob(filepath.Join(dir, "*.ply"))
		if err != nil {
			s.t.Fatal(err)
		}
		return names
	}
	wait.Until(s.t, "frames that are shown", func() bool { return len(saved()) >= frames })
	stop()
	if err := <-watched; err != nil {
		s.t.Error(err)
	}
	var clouds []pointcloud.Cloud
	for _, name := range saved() {
		var cloud pointcloud.Cloud
		data, err := os.ReadFile(name)
		if err == nil {
			err = pointcloud.ReadPLY(bytes.NewReader(data), &cloud)
		}
		if err != nil {
			s.t.Error(err)
		}
		clouds = append(clouds, cloud)
	}
	return clouds
}

// TestRealSenseArrives records a person with a RealSense camera in software, publishes the recording, and compares the
// frames of a watcher with the points that librealsense alone computes from the recording: depth aligned to colour, and
// projected. 6,000 of each frame's 65,000 points are sent, at random, so that a busy machine keeps up.
func TestRealSenseArrives(t *testing.T) {
	library := rstest.Library(t)
	scene := rstest.Person(t, 3)
	path := filepath.Join(t.TempDir(), "person.db3")
	scene.Record(t, library, path, 0)
	expected := rstest.Points(t, library, path)
	places := make([]map[[2]int]int, len(expected))
	for i := range expected {
		places[i] = pixels(t, &scene.Camera, &expected[i])
	}
	// 16 bits for a box of some 4 m are steps of 0.06 mm; pixels are 2 mm apart.
	s := perform(t, "--source realsense:"+path+" --realsense-library "+library.Path()+" --fps 5 --tiles 1 --points "+
		"6000 --qualities all=100%:16 --codec raw --stand=false")
	clouds := s.watchFor(6)
	source, err := capture.Open("realsense:"+path,
		capture.Options{RealSense: realsense.Config{Library: library.Path()}})
	if err != nil {
		t.Fatal(err)
	}
	box := source.Info().Box
	_ = source.Close()
	var step float64
	for axis := range 3 {
		step = max(step, float64(box.Max[axis]-box.Min[axis])/(1<<16-1))
	}
	shown := make(map[int]bool)
	for i := range clouds {
		frame := -1
		for number := range expected {
			if off, ok := compare(&clouds[i], &expected[number], pixels(t, &scene.Camera, &clouds[i]),
				places[number]); ok && off <= step {
				frame = number
			}
		}
		if frame < 0 || clouds[i].Len() != 6000 {
			t.Errorf("frame %d of %d points is none that the library makes, within %.2g mm", i, clouds[i].Len(),
				1000*step)
			continue
		}
		shown[frame] = true
	}
	if len(shown) < len(expected)-1 {
		t.Errorf("%d different frames were shown of %d", len(shown), len(expected))
	}
}

// compare returns the largest distance between points of two clouds in the same pixels, and whether there are such
// points, with the same colours.
func compare(cloud, other *pointcloud.Cloud, at, places map[[2]int]int) (farthest float64, ok bool) {
	for pixel, i := range at {
		j, found := places[pixel]
		if !found || cloud.Colors[i] != other.Colors[j] {
			return 0, false
		}
		for axis := range 3 {
			farthest = max(farthest, math.Abs(float64(cloud.Positions[i][axis]-other.Positions[j][axis])))
		}
	}
	return farthest, true
}

// TestRealSenseFlags requests settings of cameras that are not connected.
func TestRealSenseFlags(t *testing.T) {
	none := filepath.Join(t.TempDir(), "librealsense2.so")
	empty := rstest.Fake{Version: 25901}.Build(t)
	tests := []struct{ line, says string }{
		{"--realsense-library " + none, none},
		{"--realsense-library " + rstest.Fake{Version: 31200}.Build(t), "is 3.12.0, expected 2.16 or a newer 2.x"},
		{"--realsense-library " + empty, "no RealSense camera is plugged in"},
		{"--realsense-library " + empty + " --fps 29.5", "expected a whole number"},
		{"--realsense-size big", "--realsense-size"},
		{"--realsense-filters sepia", "--realsense-filters"},
	}
	for _, test := range tests {
		root := newRoot()
		root.SetArgs(append(strings.Fields("publish --room room --identity alice --source realsense"),
			strings.Fields(test.line)...))
		if err := root.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: got %v, expected it to say %q", test.line, err, test.says)
		}
	}
}
