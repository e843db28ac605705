package capture

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/capture/realsense"
	"github.com/volsfu/volsfu/pkg/capture/realsense/rs2"
	"github.com/volsfu/volsfu/pkg/capture/realsense/rstest"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// wallRecordings are from cameras in front of walls at 1.5 m. The second camera is 1 m to the right
// of the first, without overlap; the third is at the position of the first.
func wallRecordings(t *testing.T) (dir string, options Options) {
	t.Helper()
	library := rstest.Library(t)
	dir = t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		scene := rstest.Wall(6)
		scene.Camera.Name = name
		scene.Record(t, library, filepath.Join(dir, name+".db3"), 1.7e12)
	}
	calibration := filepath.Join(t.TempDir(), "calibration.yaml")
	text := "cameras: {a: {position: [0, 0, 0]}, b: {position: [5, 0, 0]}, c: {position: [0, 0, 0]}}"
	if err := os.WriteFile(calibration, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	options = DefaultOptions()
	options.RealSense.Library = library.Path()
	options.Calibration = calibration
	return dir, options
}

func openRecorded(t *testing.T, spec string, options Options) Source {
	t.Helper()
	source, err := OpenOn(newHandClock(), spec, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = source.Close() })
	return source
}

func TestRealSenseMergesCameras(t *testing.T) {
	dir, options := wallRecordings(t)
	options.Images = true
	source := openRecorded(t, "realsense:"+dir, options)
	info := source.Info()
	if len(info.Cameras) != 3 || info.FrameRate != 30 || info.Points != 3*64*48 ||
		!strings.Contains(info.Description, dir) {
		t.Errorf("got %+v", info)
	}
	var frame Frame
	for number := range int64(8) {
		if err := source.Read(t.Context(), &frame); err != nil {
			t.Fatal(err)
		}
		if frame.Number != number || len(frame.Images) != 3 || len(frame.Images[2].Depth) != 64*48 {
			t.Fatalf("frame %d has number %d and %d images", number, frame.Number, len(frame.Images))
		}
		cloud := &frame.Cloud
		if cloud.Len() != 3*64*48 || len(cloud.Sources) != cloud.Len() {
			t.Fatalf("frame %d has %d points with %d sources", number, cloud.Len(), len(cloud.Sources))
		}
		if !inside(cloud, info.Box) {
			t.Fatalf("points are in %v, expected %v", cloud.Bounds(), info.Box)
		}
		counts := make(map[uint16]int)
		for i, p := range cloud.Positions {
			counts[cloud.Sources[i]]++
			if right := p[0] > 2.5; right != (cloud.Sources[i] == 0b010) {
				t.Fatalf("point %v was seen by %03b", p, cloud.Sources[i])
			}
		}
		if counts[0b010] != 64*48 || counts[0b101] != 2*64*48 {
			t.Errorf("points by the cameras that saw them: %v", counts)
		}
	}
}

func TestRealSenseBackground(t *testing.T) {
	dir, options := wallRecordings(t)
	options.Calibration = ""
	spec := "realsense:" + filepath.Join(dir, "a.db3")
	read := func(change func(*Options)) (Source, Frame) {
		t.Helper()
		changed := options
		change(&changed)
		source := openRecorded(t, spec, changed)
		var frame Frame
		if err := source.Read(t.Context(), &frame); err != nil {
			t.Fatal(err)
		}
		return source, frame
	}
	source, frame := read(func(*Options) {})
	if frame.Cloud.Len() != 64*48 || len(frame.Cloud.Sources) != 0 || len(frame.Images) != 0 {
		t.Errorf("got %d points, %d sources, %d images", frame.Cloud.Len(), len(frame.Cloud.Sources), len(frame.Images))
	}
	if box := source.Info().Box; box.Min[2] > -3 || box.Min[2] < -3.1 || box.Max[2] < 0 {
		t.Errorf("without a range: got box %v", box)
	}
	if _, frame = read(func(o *Options) { o.Points = 500 }); frame.Cloud.Len() != 500 {
		t.Errorf("of 500 points: got %d", frame.Cloud.Len())
	}
	if _, frame = read(
		func(o *Options) { o.Background = depth.Background{Near: 0.2, Far: 1} },
	); frame.Cloud.Len() != 0 {
		t.Errorf("wall behind the range: got %d points", frame.Cloud.Len())
	}
	left := volumetric.BoundingBox{Min: [3]float32{-9, -9, -9}, Max: [3]float32{0, 9, 9}}
	if source, frame = read(
		func(o *Options) { o.Background.Box = left },
	); frame.Cloud.Len() != 32*48 || source.Info().Box.Max[0] != 0 ||
		source.Info().Box.Min[0] < -2 {
		t.Errorf("left half: got %d points in %v", frame.Cloud.Len(), source.Info().Box)
	}
	// The wall is one millimetre nearer in each frame, which does not count as an object.
	if _, frame = read(
		func(o *Options) { o.Background.Static = true },
	); frame.Cloud.Len() != 0 ||
		frame.Number < depth.LearnImages {
		t.Errorf("learnt background: frame %d has %d points", frame.Number, frame.Cloud.Len())
	}
}

func TestRealSenseErrors(t *testing.T) {
	dir, options := wallRecordings(t)
	none := options
	none.RealSense.Library = filepath.Join(dir, "none.so")
	empty := options
	empty.RealSense.Library = rstest.Fake{Version: 25901}.Build(t)
	half := empty
	half.FPS = 29.5
	lost := options
	lost.Calibration = filepath.Join(dir, "none.yaml")
	tests := []struct {
		spec    string
		options Options
		err     error
	}{
		{"realsense", none, rs2.ErrUnavailable},
		{"realsense:" + dir, none, rs2.ErrUnavailable},
		{"realsense", empty, realsense.ErrNoCamera},
		{"realsense", half, ErrOptions},
		{"realsense:" + filepath.Join(dir, "none.db3"), options, realsense.ErrRecording},
		{"realsense:" + dir, lost, depth.ErrCalibration},
	}
	for _, test := range tests {
		source, err := Open(test.spec, test.options)
		if !errors.Is(err, test.err) {
			t.Errorf("%s: got %v, expected %v", test.spec, err, test.err)
		}
		if source != nil {
			_ = source.Close()
		}
	}
	source := openRecorded(t, "realsense:"+filepath.Join(dir, "a.db3"), Options{RealSense: options.RealSense})
	_ = source.Close()
	if err := errors.Join(source.Close(), source.Read(t.Context(), new(Frame))); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: got %v", err)
	}
}
