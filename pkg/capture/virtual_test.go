package capture

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/capture/virtual"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// lenses writes a file of virtual cameras, each with the given noise, and returns options with it.
func lenses(t *testing.T, noise string, positions ...string) Options {
	t.Helper()
	var b strings.Builder
	b.WriteString("cameras:\n")
	for _, p := range positions {
		b.WriteString("  - {width: 160, height: 144, field_of_view: 65, position: [" + p + "], " +
			"look_at: [0, 0.95, 0], noise: {" + noise + "}}\n")
	}
	o := DefaultOptions()
	o.VirtualCameras, o.Rasters, o.Images = filepath.Join(t.TempDir(), "cameras.yaml"), true, true
	if err := os.WriteFile(o.VirtualCameras, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return o
}

const (
	inFront = "0, 1.1, 1.9"
	atSide  = "1.4, 1.1, 1.2"
)

// pixels returns the number of pixels with a depth.
func pixels(m *depth.Image) int {
	return len(m.Depth) - countOf(m.Depth, 0)
}

func countOf(values []uint16, value uint16) int {
	n := 0
	for _, v := range values {
		if v == value {
			n++
		}
	}
	return n
}

// TestVirtualFigure checks the images, rasters and points of the synthetic figure before two cameras.
func TestVirtualFigure(t *testing.T) {
	options := lenses(t, "white_mm: 2, dropped_edges: 0.1, flying_pixels: 0.2", inFront, atSide)
	source := open(t, "synthetic", options)
	info := source.Info()
	if len(info.Cameras) != 2 || info.Cameras[1].Name != "camera2" || info.FrameRate != 30 ||
		info.Points != 2*160*144 || !strings.Contains(info.Description, "camera1 160x144") {
		t.Errorf("info is %+v", info)
	}
	var frame Frame
	for range 3 {
		if err := source.Read(t.Context(), &frame); err != nil {
			t.Fatal(err)
		}
		if len(frame.Images) != 2 || len(frame.Rasters) != 2 {
			t.Fatalf("%d images, %d rasters", len(frame.Images), len(frame.Rasters))
		}
		sum := 0
		for i := range frame.Rasters {
			n := pixels(&frame.Rasters[i])
			sum += n
			// A person of 1.7 m is 100 pixels high. Cleaning removes the flying pixels and few others.
			if seen := pixels(&frame.Images[i]); n < 1600 || float64(n) < 0.85*float64(seen) || n >= seen {
				t.Errorf("camera %d: %d pixels, %d of them points", i, seen, n)
			}
		}
		if frame.Cloud.Len() != sum || !inside(&frame.Cloud, info.Box) || len(frame.Cloud.Sources) != sum {
			t.Fatalf("%d points for %d pixels in %v, expected %v", frame.Cloud.Len(), sum, frame.Cloud.Bounds(),
				info.Box)
		}
		both := countOf(frame.Cloud.Sources, 0b11)
		if both < sum/10 || both > sum*9/10 {
			t.Errorf("%d of %d points were seen by both cameras", both, sum)
		}
		// The figure faces +z: the front is seen, 9 cm or more before its middle, and no back.
		if far := frame.Cloud.Bounds(); far.Max[1] < 1.6 || far.Min[1] > 0.1 || far.Max[2] < 0.05 {
			t.Errorf("points in %v", far)
		}
	}
	again := open(t, "synthetic", options)
	same := Frame{}
	for range 3 {
		if err := again.Read(t.Context(), &same); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(same.Rasters[1].Depth, frame.Rasters[1].Depth) {
		t.Error("two sources have different images of one frame")
	}
	options.Points = 1000
	if limited := read(t, open(t, "synthetic", options)); limited.Cloud.Len() != 1000 {
		t.Errorf("%d points, expected 1000", limited.Cloud.Len())
	}
}

// TestVirtualFigureHasNoHoles closes the outline of the figure's head and trunk: no row has a gap.
func TestVirtualFigureHasNoHoles(t *testing.T) {
	frame := read(t, open(t, "synthetic", lenses(t, "", inFront)))
	m := &frame.Images[0]
	for y := 1; y < 143; y++ {
		for x := 1; x < 159; x++ {
			i := y*160 + x
			if m.Depth[i] == 0 && m.Depth[i-1] != 0 && m.Depth[i+1] != 0 && m.Depth[i-160] != 0 && m.Depth[i+160] != 0 {
				t.Errorf("a hole at %d, %d", x, y)
			}
		}
	}
	inner := make([]bool, len(m.Depth))
	for i := range m.Depth {
		x, y := i%160, i/160
		inner[i] = x > 0 && y > 0 && x < 159 && y < 143 && m.Depth[i] != 0
	}
	// Depths of neighbours inside differ smoothly: the second difference is below 2 cm for nearly all but the edges of
	// arms.
	rough, all := 0, 0
	for y := 1; y < 143; y++ {
		for x := 1; x < 159; x++ {
			i := y*160 + x
			if !inner[i] || !inner[i-1] || !inner[i+1] {
				continue
			}
			all++
			if second := float64(m.Depth[i-1]) + float64(m.Depth[i+1]) - 2*float64(m.Depth[i]); math.Abs(second) > 200 {
				rough++
			}
		}
	}
	if float64(rough) > 0.1*float64(all) {
		t.Errorf("%d of %d pixels are rough", rough, all)
	}
}

// TestVirtualMesh plays a mesh before two cameras, live and from a recording of the images.
func TestVirtualMesh(t *testing.T) {
	options := lenses(t, "white_mm: 1", inFront, atSide)
	options.FPS = 2
	source := open(t, "glb:"+testData(t, "cesium-man", "CesiumMan.glb"), options)
	if info := source.Info(); len(info.Cameras) != 2 || info.Box == (volumetric.BoundingBox{}) {
		t.Errorf("info is %+v", info)
	}
	frame := read(t, source)
	if n := pixels(&frame.Rasters[0]) + pixels(&frame.Rasters[1]); n != frame.Cloud.Len() || n < 2500 {
		t.Errorf("%d pixels and %d points", n, frame.Cloud.Len())
	}
	options.Prune = true
	pruned := read(t, open(t, "glb:"+testData(t, "cesium-man", "CesiumMan.glb"), options))
	n := pixels(&pruned.Rasters[0]) + pixels(&pruned.Rasters[1])
	if n != pruned.Cloud.Len() || n > frame.Cloud.Len()*19/20 || n < frame.Cloud.Len()/2 {
		t.Errorf("%d pixels and %d points after pruning of %d", n, pruned.Cloud.Len(), frame.Cloud.Len())
	}
	options.Rasters = false
	if cloud := &read(t, open(t, "glb:"+testData(t, "cesium-man", "CesiumMan.glb"), options)).Cloud; cloud.Len() != n {
		t.Errorf("%d points without rasters, expected %d", cloud.Len(), n)
	}
}

func TestVirtualErrors(t *testing.T) {
	good := lenses(t, "", inFront)
	absent, calibrated, static := good, good, good
	absent.VirtualCameras += ".absent"
	calibrated.Calibration = "cameras.yaml"
	static.Background.Static = true
	for _, test := range []struct {
		spec    string
		options Options
		err     error
		says    string
	}{
		{"ply:x", good, ErrOptions, "virtual cameras see synthetic and glb:FILE, got ply:DIR"},
		{"rgbd:x", good, ErrOptions, "got rgbd:DIR"},
		{"glb:absent", good, os.ErrNotExist, "absent"},
		{"synthetic", absent, virtual.ErrRig, ".absent"},
		{"synthetic", calibrated, ErrOptions, "expected no calibration"},
		{"synthetic", static, ErrOptions, "see no background"},
	} {
		_, err := Open(test.spec, test.options)
		if !errors.Is(err, test.err) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, expected %v that says %q", test.spec, err, test.err, test.says)
		}
	}
}

// BenchmarkVirtualFigure reads frames of the synthetic figure before one camera of 640 × 576 pixels.
func BenchmarkVirtualFigure(b *testing.B) {
	options := DefaultOptions()
	options.VirtualCameras, options.Rasters = filepath.Join("..", "..", "docs", "cameras", "front.yaml"), true
	source, err := OpenOn(newHandClock(), "synthetic", options)
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
