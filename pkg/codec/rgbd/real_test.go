package rgbd

import (
	"image"
	"os"
	"path/filepath"
	"testing"

	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/capture/kinect"
	captured "github.com/volsfu/volsfu/pkg/capture/rgbd"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/pointcloud/fidelity"
	"github.com/volsfu/volsfu/test/long"
)

// recorded is a cleaned image of a recording with its points.
type recorded struct {
	camera depth.Camera
	image  depth.Image
	cloud  pointcloud.Cloud
}

// testData returns the path of a recording, or skips the test.
func testData(t testing.TB, name string) string {
	t.Helper()
	root := os.Getenv("VOLSFU_TESTDATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "..", "shared", "data")
	}
	path := filepath.Join(root, name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("skipped: test data not found at %s; set VOLSFU_TESTDATA", path)
	}
	return path
}

// cleaned projects an image of a camera.
func cleaned(t testing.TB, camera depth.Camera, raw *depth.Image, near, far float64) *recorded {
	t.Helper()
	r := &recorded{camera: camera}
	options := depth.DefaultOptions()
	options.Background.Near, options.Background.Far = near, far
	p, err := depth.NewProjector(camera, options)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.ProjectCleaned(raw, &r.cloud, &r.image); err != nil {
		t.Fatal(err)
	}
	return r
}

// seated returns a frame of the seated person.
func seated(t testing.TB, frame int) *recorded {
	t.Helper()
	folder, err := captured.OpenFolder(testData(t, "seated-human/rgbd"))
	if err != nil {
		t.Fatal(err)
	}
	camera, err := folder.Intrinsics().Camera("seated")
	if err != nil {
		t.Fatal(err)
	}
	var raw depth.Image
	if err := folder.LoadImage(frame, &raw); err != nil {
		t.Fatal(err)
	}
	return cleaned(t, camera, &raw, folder.Intrinsics().Near, folder.Intrinsics().Far)
}

// desk returns the first frame of the Azure Kinect with both images.
func desk(t testing.TB) *recorded {
	t.Helper()
	recording, err := kinect.Open("desk", testData(t, "azure-kinect/recording.mkv"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = recording.Close() }()
	for frame := range recording.Len() {
		var raw depth.Image
		if err := recording.LoadImage(frame, &raw); err != nil {
			t.Fatal(err)
		}
		if len(raw.Depth) > 0 && len(raw.Colors) > 0 {
			return cleaned(t, recording.Camera(), &raw, 0.2, 1.5)
		}
	}
	t.Skip("skipped: the recording has no frame with both images")
	return nil
}

// rectangles cuts an image into tiles.
func rectangles(t testing.TB, r *recorded, tiles int) []image.Rectangle {
	t.Helper()
	rects, err := Rectangles(&r.camera, &r.image, tiles)
	if err != nil {
		t.Fatal(err)
	}
	return rects
}

// TestReal measures bits and errors of real captures and expects them within the goals of docs/codec.md, with a margin
// for the frames that are not measured here.
func TestReal(t *testing.T) {
	long.Test(t)
	for _, row := range []struct {
		name               string
		capture            func(testing.TB) *recorded
		tiles              int
		params             codec.RasterParams
		bits, d1, d2, luma float64
	}{
		{"seated, full", func(t testing.TB) *recorded { return seated(t, 0) }, 4,
			codec.RasterParams{Step: 0.00065, ColorQuality: 80}, 4.1, 76.8, 81.5, 36.2},
		{"seated, half", func(t testing.TB) *recorded { return seated(t, 0) }, 4,
			codec.RasterParams{Reduction: 1, Step: 0.0015, ColorQuality: 75}, 1.6, 59, 60, 20},
		{"seated, quarter", func(t testing.TB) *recorded { return seated(t, 0) }, 4,
			codec.RasterParams{Reduction: 2, Step: 0.003, ColorQuality: 75}, 0.6, 51, 55, 18},
		{"kinect", desk, 1, codec.RasterParams{Step: 0.001, ColorQuality: 70}, 2.8, 80, 80, 38},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := row.capture(t)
			var decoded, one pointcloud.Cloud
			bytes, depths, colors := 0, 0, 0
			for _, rect := range rectangles(t, r, row.tiles) {
				p := row.params
				p.Rect = rect
				frame := mustEncode(t, &r.camera, &r.image, p)
				if err := new(decoder).Decode(&one, frame); err != nil {
					t.Fatal(err)
				}
				for i := range one.Positions {
					decoded.Append(one.Positions[i], one.Colors[i])
				}
				if bytes += len(frame); len(frame) == 0 {
					continue
				}
				var h head
				rest, err := h.parse(frame)
				if err != nil {
					t.Fatal(err)
				}
				depths += h.planes
				colors += len(rest) - h.planes
			}
			reference, err := fidelity.NewReference(&r.cloud)
			if err != nil {
				t.Fatal(err)
			}
			m, err := reference.Compare(&decoded)
			if err != nil {
				t.Fatal(err)
			}
			points := float64(r.cloud.Len())
			bits := func(n int) float64 { return float64(8*n) / points }
			d1, d2, luma := m.PointToPoint.PSNR, m.PointToPlane.PSNR, m.Color.Y
			t.Logf("%.0f points, %d decoded: %.3f bits per point, of depth %.3f, colours %.3f; D1 %.1f, D2 %.1f, "+
				"luma %.1f dB", points, decoded.Len(), bits(bytes), bits(depths), bits(colors), d1, d2, luma)
			if bits(bytes) > row.bits || d1 < row.d1 || d2 < row.d2 || luma < row.luma {
				t.Errorf("want at most %g bits per point, D1 %g, D2 %g and luma %g dB", row.bits, row.d1, row.d2,
					row.luma)
			}
		})
	}
}

func BenchmarkSeated(b *testing.B) {
	r := seated(b, 0)
	rects := rectangles(b, r, 4)
	p := codec.RasterParams{Step: 0.00065, ColorQuality: 80}
	frames := make([][]byte, len(rects))
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		e := new(encoder)
		for b.Loop() {
			for i, rect := range rects {
				p.Rect = rect
				var err error
				if frames[i], _, err = e.EncodeRaster(frames[i][:0], &r.camera, &r.image, p); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		d := new(decoder)
		var cloud pointcloud.Cloud
		for b.Loop() {
			for _, frame := range frames {
				if err := d.Decode(&cloud, frame); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}
