package capture

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/capture/glb"
	"github.com/volsfu/volsfu/pkg/capture/journal"
	"github.com/volsfu/volsfu/pkg/capture/kinect"
	"github.com/volsfu/volsfu/pkg/capture/rgbd"
	"github.com/volsfu/volsfu/pkg/capture/sequence"
	"github.com/volsfu/volsfu/pkg/capture/synthetic"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/allocations"
)

// testData returns the path of a folder of the test data, or skips the test.
func testData(t testing.TB, elements ...string) string {
	t.Helper()
	root := os.Getenv("VOLSFU_TESTDATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared", "data") // two folders below the module's root
	}
	path := filepath.Join(append([]string{root}, elements...)...)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("skipped: test data not found at %s; set VOLSFU_TESTDATA", path)
	}
	return path
}

func TestOpenErrors(t *testing.T) {
	empty := t.TempDir()
	torn := t.TempDir()
	if err := os.WriteFile(filepath.Join(torn, "frame_1.ply"), []byte("ply\nformat ascii 1.0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	with := func(change func(*Options)) Options {
		options := DefaultOptions()
		change(&options)
		return options
	}
	tests := []struct {
		spec    string
		options Options
		err     error
		says    string
	}{
		{
			"",
			DefaultOptions(),
			ErrUnknownSource,
			"expected synthetic or ply:DIR or rgbd:DIR or cwipc:FILE|DIR or kinect:FILE.mkv or glb:FILE or " +
				"replay:FILE or realsense[:FILE]",
		},
		{"lidar", DefaultOptions(), ErrUnknownSource, `"lidar"`},
		{"kinect", DefaultOptions(), ErrArgument, "expected kinect:FILE.mkv"},
		{"left=synthetic", DefaultOptions(), ErrArgument, "is not a camera recording"},
		{"=rgbd:" + empty, DefaultOptions(), ErrArgument, "empty name"},
		{"rgbd:" + empty + ",ply:" + empty, DefaultOptions(), ErrArgument, `"ply:DIR" is not a camera recording`},
		{"kinect:" + torn, DefaultOptions(), kinect.ErrMatroska, torn},
		{"glb:" + torn + "/frame_1.ply", DefaultOptions(), glb.ErrFile, "frame_1.ply"},
		{"replay:" + torn + "/frame_1.ply", DefaultOptions(), journal.ErrJournal, "frame_1.ply"},
		{"Synthetic", DefaultOptions(), ErrUnknownSource, `"Synthetic"`},
		{"plyx:dir", DefaultOptions(), ErrUnknownSource, `"plyx:dir"`},
		{"synthetic:5", DefaultOptions(), ErrArgument, `got "5"`},
		{"synthetic:", DefaultOptions(), ErrArgument, `"synthetic" takes none`},
		{"ply", DefaultOptions(), ErrArgument, "expected ply:DIR"},
		{"rgbd:", DefaultOptions(), ErrArgument, "expected rgbd:DIR"},
		{"ply:" + empty, DefaultOptions(), sequence.ErrNoFiles, empty},
		{"ply:" + empty + "/no", DefaultOptions(), fs.ErrNotExist, empty + "/no"},
		{"ply:" + torn, DefaultOptions(), pointcloud.ErrMalformed, "frame_1.ply"},
		{"rgbd:" + empty, DefaultOptions(), rgbd.ErrNoFrames, empty},
		{"rgbd:" + empty + "/no", DefaultOptions(), fs.ErrNotExist, empty + "/no"},
		{"synthetic", with(func(o *Options) { o.FPS = -1 }), ErrOptions, "fps"},
		{"synthetic", with(func(o *Options) { o.FPS = math.NaN() }), ErrOptions, "fps"},
		{"synthetic", with(func(o *Options) { o.FPS = math.Inf(1) }), ErrOptions, "fps"},
		{"synthetic", with(func(o *Options) { o.Points = -1 }), ErrOptions, "points"},
		{"synthetic", with(func(o *Options) { o.Points = synthetic.MaxPoints + 1 }), ErrOptions, "points"},
		{"synthetic", with(func(o *Options) { o.MemoryLimit = -1 }), ErrOptions, "memory"},
	}
	for _, test := range tests {
		source, err := Open(test.spec, test.options)
		if source != nil || !errors.Is(err, test.err) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("Open(%q): got %v, expected %v that says %q", test.spec, err, test.err, test.says)
		}
	}
}

func TestKinds(t *testing.T) {
	if got := Kinds(); !slices.Equal(
		got,
		[]string{"synthetic", "ply:DIR", "rgbd:DIR", "cwipc:FILE|DIR", "kinect:FILE.mkv", "glb:FILE", "replay:FILE",
			"realsense[:FILE]"},
	) {
		t.Errorf("got %v", got)
	}
}

func TestOpenSynthetic(t *testing.T) {
	clock := newHandClock()
	options := DefaultOptions()
	options.Points, options.Seed = 1000, 3
	source, err := OpenOn(clock, "synthetic", options)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	info := source.Info()
	if info.FrameRate != 30 || info.Points != 1000 || info.Box != synthetic.Box() ||
		!strings.Contains(info.Description, "1000 points") {
		t.Errorf("info is %+v", info)
	}
	figure, err := synthetic.New(synthetic.Config{Points: 1000, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	var frame Frame
	var expected pointcloud.Cloud
	for number := range 5 {
		if err := source.Read(t.Context(), &frame); err != nil {
			t.Fatal(err)
		}
		figure.At(time.Duration(float64(number)*1e9/30), &expected)
		if !slices.Equal(frame.Cloud.Positions, expected.Positions) ||
			!slices.Equal(frame.Cloud.Colors, expected.Colors) {
			t.Errorf("frame %d is not the figure at its deadline", number)
		}
	}
	if n := allocations.PerCall(20, func() { _ = source.Read(t.Context(), &frame) }); n > 0 {
		t.Errorf("Read allocates %g times per frame", n)
	}
}

// inside reports whether the box contains all points.
func inside(cloud *pointcloud.Cloud, box volumetric.BoundingBox) bool {
	bounds := cloud.Bounds()
	for axis := range 3 {
		if bounds.Min[axis] < box.Min[axis] || bounds.Max[axis] > box.Max[axis] {
			return false
		}
	}
	return true
}

// excerpt returns a folder with every fifth pair of a recording, up to the given number: with the
// race detector, all pairs would take many seconds.
func excerpt(t *testing.T, recording string, pairs int) string {
	t.Helper()
	dir := t.TempDir()
	copyFile := func(from, to string) {
		data, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	copyFile(filepath.Join(recording, "..", rgbd.IntrinsicsFile), filepath.Join(dir, rgbd.IntrinsicsFile))
	for i := range pairs {
		for _, kind := range []string{"depth", "color"} {
			name := fmt.Sprintf("%s_%03d.png", kind, 5*i)
			copyFile(filepath.Join(recording, name), filepath.Join(dir, name))
		}
	}
	return dir
}

func TestOpenRecordings(t *testing.T) {
	recording := testData(t, "seated-human", "rgbd")
	clouds := testData(t, "seated-human", "ply")
	tests := []struct {
		spec        string
		points      int // option
		fps         float64
		frames      int
		rate        float64
		least, most int // points of a frame
	}{
		{spec: "rgbd:" + excerpt(t, recording, 6), frames: 6, rate: 24, least: 60_000, most: 69_000},
		{spec: "rgbd:" + excerpt(t, recording, 2), points: 5000, fps: 12, frames: 2, rate: 12, least: 5000, most: 5000},
		{spec: "ply:" + clouds, frames: 3, rate: 30, least: 68_000, most: 69_000},
		{spec: "ply:" + clouds, points: 20_000, fps: 60, frames: 3, rate: 60, least: 20_000, most: 20_000},
	}
	for _, test := range tests {
		options := DefaultOptions()
		options.Points, options.FPS = test.points, test.fps
		source, err := OpenOn(newHandClock(), test.spec, options)
		if err != nil {
			t.Fatal(err)
		}
		info := source.Info()
		if info.FrameRate != test.rate || info.Points < test.least || info.Points > test.most {
			t.Errorf("%s: info is %+v", test.spec, info)
		}
		var frame Frame
		var first *pointcloud.Cloud
		for number := range test.frames + 1 {
			if err := source.Read(t.Context(), &frame); err != nil {
				t.Fatal(err)
			}
			if n := frame.Cloud.Len(); n < test.least || n > test.most || !inside(&frame.Cloud, info.Box) {
				t.Errorf("%s: frame %d has %d points within %v, expected %d to %d within %v",
					test.spec, number, n, frame.Cloud.Bounds(), test.least, test.most, info.Box)
			}
			if number == 0 {
				first = new(pointcloud.Cloud)
				first.CopyFrom(&frame.Cloud)
			}
		}
		if !slices.Equal(first.Positions, frame.Cloud.Positions) || !slices.Equal(first.Colors, frame.Cloud.Colors) {
			t.Errorf("%s: the loop does not begin with the first frame again", test.spec)
		}
		if err := source.Close(); err != nil {
			t.Error(err)
		}
	}
}

func benchmarkRead(b *testing.B, spec string, options Options) {
	source, err := OpenOn(newHandClock(), spec, options)
	if err != nil {
		b.Fatal(err)
	}
	defer source.Close()
	var frame Frame
	b.ReportAllocs()
	for b.Loop() {
		if err := source.Read(b.Context(), &frame); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadSynthetic(b *testing.B) { benchmarkRead(b, "synthetic", DefaultOptions()) }

func BenchmarkReadPLY(b *testing.B) {
	benchmarkRead(b, "ply:"+testData(b, "seated-human", "ply"), DefaultOptions())
}

func BenchmarkReadRGBD(b *testing.B) {
	benchmarkRead(b, "rgbd:"+testData(b, "seated-human", "rgbd"), DefaultOptions())
}

func BenchmarkReadRGBDWithoutMemory(b *testing.B) {
	benchmarkRead(b, "rgbd:"+testData(b, "seated-human", "rgbd"), Options{})
}
