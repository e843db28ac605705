package capture

import (
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/capture/journal"
	"github.com/volsfu/volsfu/pkg/capture/rgbd"
)

// walls writes folders of RGB-D frames: frame i shows a wall at 1 m + i cm in the colour of the
// camera.
func walls(t *testing.T, frames int, fps float64, names ...string) string {
	t.Helper()
	root := t.TempDir()
	for n, name := range names {
		dir := filepath.Join(root, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		write := func(name string, picture image.Image) {
			file, err := os.Create(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(png.Encode(file, picture), file.Close()); err != nil {
				t.Fatal(err)
			}
		}
		in := fmt.Sprintf(
			`{"width": 40, "height": 30, "fx": 40, "fy": 40, "cx": 20, "cy": 15, "depth_unit_m": 0.001, "fps": %g}`,
			fps,
		)
		if err := os.WriteFile(filepath.Join(dir, rgbd.IntrinsicsFile), []byte(in), 0o600); err != nil {
			t.Fatal(err)
		}
		for i := range frames {
			far, colors, mask := image.NewGray16(
				image.Rect(0, 0, 40, 30),
			), image.NewRGBA(
				image.Rect(0, 0, 40, 30),
			), image.NewGray(
				image.Rect(0, 0, 40, 30),
			)
			for p := range 40 * 30 {
				far.SetGray16(p%40, p/40, color.Gray16{Y: uint16(1000 + 10*i)})
				colors.SetRGBA(p%40, p/40, color.RGBA{R: uint8(n), G: uint8(i), A: 255})
				mask.Pix[p] = uint8(p % 40 / 20 * 5)
			}
			write(fmt.Sprintf("depth_%d.png", i), far)
			write(fmt.Sprintf("color_%d.png", i), colors)
			write(fmt.Sprintf("mask_%d.png", i), mask)
		}
	}
	return root
}

func open(t *testing.T, spec string, options Options) Source {
	t.Helper()
	source, err := OpenOn(newHandClock(), spec, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = source.Close() })
	return source
}

func read(t *testing.T, source Source) *Frame {
	t.Helper()
	frame := new(Frame)
	if err := source.Read(t.Context(), frame); err != nil {
		t.Fatal(err)
	}
	return frame
}

// TestCamerasMerge has two cameras 10 cm apart: both see the same wall within their pictures.
func TestCamerasMerge(t *testing.T) {
	root := walls(t, 3, 30, "left", "right")
	calibration := filepath.Join(root, "cameras.yaml")
	text := "cameras:\n  left: {position: [0, 0, 0]}\n  east: {position: [0.1, 0, 0]}\n"
	if err := os.WriteFile(calibration, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	options := DefaultOptions()
	options.Calibration, options.Images = calibration, true
	source := open(t, "rgbd:"+root+"/left,east=rgbd:"+root+"/right", options)
	info := source.Info()
	if len(info.Cameras) != 2 || info.Cameras[0].Name != "left" || info.Cameras[1].Name != "east" ||
		info.Points != 2400 ||
		!strings.Contains(info.Description, "left, 3 RGB-D") {
		t.Errorf("info is %+v", info)
	}
	read(t, source)
	frame := read(t, source)
	counts := map[[2]uint16]int{} // by camera and set of cameras
	for i, p := range frame.Cloud.Positions {
		own := frame.Cloud.Colors[i][0]
		counts[[2]uint16{uint16(own), frame.Cloud.Sources[i]}]++
		if math.Abs(float64(p[2])+1.01) > 1e-6 || frame.Cloud.Colors[i][1] != 1 {
			t.Fatalf("a point at %v of colour %v in frame 1", p, frame.Cloud.Colors[i])
		}
		// Pixels are 1.01 m / 40 wide: the right half of the picture, with label 5, starts at the
		// camera's own position.
		if label := frame.Cloud.Labels[i]; (p[0]-0.1*float32(own) > 0) != (label == 5) {
			t.Fatalf("a point at %v of camera %d has label %d", p, own, label)
		}
	}
	// 10 cm are 3.96 pixels: of 40 columns, 36 are seen by both.
	if counts[[2]uint16{0, 3}] != 36*30 || counts[[2]uint16{0, 1}] != 4*30 || counts[[2]uint16{1, 3}] != 36*30 ||
		counts[[2]uint16{1, 2}] != 4*30 {
		t.Errorf("points by camera and set of cameras: %v", counts)
	}
	if len(frame.Images) != 2 || frame.Images[1].Depth[0] != 1010 || frame.Images[1].Colors[0] != [3]uint8{1, 1, 0} ||
		len(frame.Images[0].Labels) != 1200 {
		t.Errorf("%d images", len(frame.Images))
	}
	options.Points = 100
	if frame := read(
		t,
		open(t, "rgbd:"+root+"/left,east=rgbd:"+root+"/right", options),
	); frame.Cloud.Len() != 100 || len(frame.Cloud.Sources) != 100 ||
		len(frame.Cloud.Labels) != 100 {
		t.Errorf(
			"%d points of 100, %d sources, %d labels",
			frame.Cloud.Len(),
			len(frame.Cloud.Sources),
			len(frame.Cloud.Labels),
		)
	}
}

func TestCamerasErrors(t *testing.T) {
	root := walls(t, 2, 30, "left", "right", "odd,rgbd")
	slow := walls(t, 2, 15, "slow")
	calibration := filepath.Join(root, "cameras.yaml")
	if err := os.WriteFile(calibration, []byte("cameras: {left: {position: [0, 0, 0]}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	left, right := "rgbd:"+root+"/left", "rgbd:"+root+"/right"
	tests := []struct {
		spec        string
		calibration string
		background  depth.Background
		err         error
		says        string
	}{
		{left + "," + left, "", depth.Background{}, ErrArgument, `two cameras have the name "left"`},
		{left + "," + right, calibration, depth.Background{}, depth.ErrCalibration, `"right"`},
		{left, filepath.Join(root, "none"), depth.Background{}, depth.ErrCalibration, "none"},
		{left + ",rgbd:" + slow + "/slow", "", depth.Background{}, ErrArgument, "15 frames per second, expected 30"},
		{left, "", depth.Background{Static: true, Scene: "nowhere.png"}, depth.ErrBackground, "nowhere.png"},
		{left, "", depth.Background{Near: 5}, ErrNoPoints, "2 frames"},
		{strings.Repeat(left+",", 16) + left, "", depth.Background{}, ErrArgument, "17 cameras"},
	}
	for _, test := range tests {
		options := DefaultOptions()
		options.Calibration, options.Background = test.calibration, test.background
		if source, err := Open(
			test.spec,
			options,
		); source != nil || !errors.Is(err, test.err) ||
			!strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: got %v, expected an error around %q that says %q", test.spec, err, test.err, test.says)
		}
	}
	// A comma belongs to the folder's name unless a source follows.
	if frame := read(t, open(t, "rgbd:"+root+"/odd,rgbd", DefaultOptions())); frame.Cloud.Len() != 1200 {
		t.Errorf("%d points", frame.Cloud.Len())
	}
}

// TestBackgrounds applies the background options to a recording.
func TestBackgrounds(t *testing.T) {
	root := walls(t, 2, 30, "left")
	empty := filepath.Join(root, "empty.png")
	scene := image.NewGray16(image.Rect(0, 0, 40, 30))
	for p := range 400 {
		scene.SetGray16(p%40, p/40, color.Gray16{Y: 900})
	}
	file, err := os.Create(empty)
	if err == nil {
		err = errors.Join(png.Encode(file, scene), file.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	for spec, points := range map[string]int{"": 1200, "range=:1.005": 1200, "mask": 600, "static:" + empty: 800,
		"box=0,-9,-9:9,9,9": 600} {
		options := DefaultOptions()
		if spec != "" {
			if options.Background, err = depth.ParseBackground([]string{spec}); err != nil {
				t.Fatal(err)
			}
		}
		if got := open(t, "rgbd:"+root+"/left", options).Info().Points; got != points {
			t.Errorf("%q: %d points in the largest frame, expected %d", spec, got, points)
		}
	}
	options := DefaultOptions()
	options.Background.Static = true
	if _, err := Open("rgbd:"+root+"/left", options); !errors.Is(err, ErrNoPoints) {
		t.Errorf("a scene that is nothing but background: %v", err)
	}
}

// TestReplayKeepsTimes checks that the intervals between frames are those of the capture, and that
// the order of points is preserved.
func TestReplayKeepsTimes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	begun := time.Now()
	cloud := row(50)
	head := journal.Head{Content: journal.Points, Description: "a row", FrameRate: 10, Box: cloud.Bounds(), Points: 50}
	w, err := journal.Create(path, head)
	if err != nil {
		t.Fatal(err)
	}
	after := []time.Duration{0, 90 * time.Millisecond, 300 * time.Millisecond, 410 * time.Millisecond}
	for i, d := range after {
		if err := w.WriteFrame(&journal.Frame{Number: int64(2 * i), Capture: begun.Add(d), Cloud: cloud}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		fps  float64
		pace time.Duration
	}{{0, 1}, {5, 2}} {
		options := DefaultOptions()
		options.FPS, options.Points = test.fps, 20
		source := open(t, "replay:"+path, options)
		if info := source.Info(); info.Points != 20 || !strings.Contains(info.Description, "a row") {
			t.Errorf("info is %+v", info)
		}
		var first time.Time
		for i := range 9 {
			frame := read(t, source)
			if i == 0 {
				first = frame.Capture
			}
			// The loop starts again one frame interval, 100 ms, after its last frame.
			expected := (after[i%4] + time.Duration(i/4)*510*time.Millisecond) * test.pace
			if got := frame.Capture.Sub(first); got != expected || frame.Number != int64(i) {
				t.Errorf("at %g fps frame %d was captured after %v, expected %v", test.fps, frame.Number, got, expected)
			}
			if !slices.Equal(frame.Cloud.Positions, cloud.Positions[:20]) {
				t.Errorf("frame %d has other points, or another order", i)
			}
		}
	}
}

func TestReplayErrors(t *testing.T) {
	root := walls(t, 1, 30, "left")
	if _, err := Open("replay:"+root+"/none", DefaultOptions()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// TestOpenGLB plays the animated mesh: every frame has its points in another order, and the loop
// has the length of the animation.
func TestOpenGLB(t *testing.T) {
	options := DefaultOptions()
	options.Points, options.FPS = 1000, 4
	source := open(t, "glb:"+testData(t, "cesium-man", "CesiumMan.glb"), options)
	info := source.Info()
	if info.FrameRate != 4 || info.Points != 1000 ||
		!strings.Contains(info.Description, "8 frames of a mesh of 4672 triangles") {
		t.Errorf("info is %+v", info)
	}
	var first *Frame
	for i := range 9 {
		frame := read(t, source)
		if !inside(&frame.Cloud, info.Box) || frame.Cloud.Len() != 1000 {
			t.Errorf("frame %d: %d points within %v", i, frame.Cloud.Len(), frame.Cloud.Bounds())
		}
		switch {
		case i == 0:
			first = frame
		case i == 1 && slices.Equal(frame.Cloud.Colors, first.Cloud.Colors):
			t.Error("points have the same order in two frames")
		case i == 8 && !slices.Equal(frame.Cloud.Positions, first.Cloud.Positions):
			t.Error("the loop does not begin with the first frame again")
		}
	}
}

// TestOpenKinect plays a real recording, of one frame.
func TestOpenKinect(t *testing.T) {
	options := DefaultOptions()
	options.Background.Far = 0.6
	source := open(t, "kinect:"+testData(t, "azure-kinect", "recording.mkv"), options)
	info := source.Info()
	if info.FrameRate != 5 || len(info.Cameras) != 1 || info.Cameras[0].Name != "recording" {
		t.Errorf("info is %+v", info)
	}
	for range 2 {
		frame := read(t, source)
		if !inside(&frame.Cloud, info.Box) || frame.Cloud.Len() < 20_000 || frame.Cloud.Len() > 80_000 ||
			frame.Cloud.Sources != nil {
			t.Errorf(
				"%d points within %v, expected those of a mug and a table",
				frame.Cloud.Len(),
				frame.Cloud.Bounds(),
			)
		}
	}
}
