package main_test

import (
	"image"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/rgbd"
)

var codecLine = regexp.MustCompile(`(?m)^(....): (\d+) bytes, (\d+) points in place$`)

// TestCodecs encodes and decodes in C with every codec of the library.
func TestCodecs(t *testing.T) {
	program := compile(t, filepath.Join("testdata", "codec.c"), sanitizer(t))
	out, err := run(t, program, depthFrame(t))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if want := "raster of 20x30 pixels, 600 points\n"; !strings.HasSuffix(out, want) {
		t.Errorf("%q, expected a %s", out, want)
	}
	seen := make(map[string]bool)
	for _, line := range codecLine.FindAllStringSubmatch(out, -1) {
		seen[line[1]] = true
		if line[3] != "5000" {
			t.Errorf("%s: %s of 5000 points have their place", line[1], line[3])
		}
	}
	for _, fourCC := range []string{"zstd", "cwi0", "raw1"} {
		if !seen[fourCC] {
			t.Errorf("the library does not encode %s: %s", fourCC, out)
		}
	}
}

// depthFrame writes a frame of a part of a depth camera's image, at half its size, and returns the path. The camera has
// a pose and a lens with a distortion.
func depthFrame(t *testing.T) string {
	camera := depth.Camera{Width: 160, Height: 120, FX: 150, FY: 151, CX: 79, CY: 61, Unit: 0.001}
	camera.Distortion.Model = depth.BrownConrady
	camera.Distortion.Coefficients = [8]float64{0.05, -0.02, 0.001, 0.002, 0.01}
	rotation, _ := depth.Rotation([4]float64{0.1, 0.2, 0.3, 0.9})
	camera.Pose = depth.Pose{Rotation: rotation, Translation: [3]float64{1, 2, 3}}
	picture := depth.Image{Depth: make([]uint16, 160*120), Colors: make([][3]uint8, 160*120)}
	for i := range picture.Depth {
		// The left half of the rectangle has points.
		if i%160 < 60 {
			picture.Depth[i] = uint16(900 + i/160)
		}
		picture.Colors[i] = [3]uint8{uint8(i % 160), uint8(i / 160), 128}
	}
	frame, points, err := rgbd.Codec.NewEncoder().(codec.RasterEncoder).EncodeRaster(nil, &camera, &picture,
		codec.RasterParams{Rect: image.Rect(20, 30, 100, 90), Reduction: 1, Step: 0.001, CameraID: 5})
	if err != nil {
		t.Fatal(err)
	}
	if points != 600 {
		t.Fatalf("%d points in the frame", points)
	}
	path := filepath.Join(t.TempDir(), "frame")
	if err := os.WriteFile(path, frame, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
