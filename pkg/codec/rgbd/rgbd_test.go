package rgbd

import (
	"errors"
	"image"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/codectest"
	"github.com/volsfu/volsfu/pkg/codec/webp"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// pinhole returns a camera of the given size with a field of view of about 70°.
func pinhole(width, height int) depth.Camera {
	return depth.Camera{Name: "test", Width: width, Height: height, FX: 0.7 * float64(width), FY: 0.7 * float64(width),
		CX: float64(width)/2 - 0.5, CY: float64(height)/2 - 0.5, Unit: 0.001}
}

// posed is the camera turned and moved.
func posed(c depth.Camera) depth.Camera {
	turn, _ := depth.Rotation([4]float64{0.1, -0.5, 0.2, 0.8})
	c.Pose = depth.Pose{Rotation: turn, Translation: [3]float64{0.5, 1.2, -3}}
	return c
}

// scene returns an image of a ball before nothing, with noise, at about 1 m.
func scene(c *depth.Camera, noise float64) *depth.Image {
	random := rand.New(rand.NewPCG(1, 2))
	m := &depth.Image{Depth: make([]uint16, c.Width*c.Height), Colors: make([][3]uint8, c.Width*c.Height)}
	radius := 0.4 * float64(min(c.Width, c.Height))
	for i := range m.Depth {
		x, y := float64(i%c.Width)-c.CX, float64(i/c.Width)-c.CY
		m.Colors[i] = [3]uint8{uint8(128 + 100*math.Sin(x/30)), uint8(128 + 100*math.Cos(y/20)), 90}
		if r := math.Hypot(x, y); r < radius {
			height := 0.3 * math.Sqrt(1-r*r/radius/radius)
			m.Depth[i] = uint16((1.2-height)/c.Unit + noise*random.NormFloat64())
		}
	}
	return m
}

// whole returns parameters for the whole image.
func whole(c *depth.Camera, step float64) codec.RasterParams {
	return codec.RasterParams{Rect: image.Rect(0, 0, c.Width, c.Height), Step: step, ColorQuality: 80}
}

func mustEncode(t testing.TB, c *depth.Camera, m *depth.Image, p codec.RasterParams) []byte {
	t.Helper()
	frame, _, err := new(encoder).EncodeRaster(nil, c, m, p)
	if err != nil {
		t.Fatal(err)
	}
	return frame
}

// TestLossless checks that depths return exactly if the step is the camera's unit, for all sizes of rectangles.
func TestLossless(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, size := range [][2]int{{1, 1}, {7, 3}, {8, 8}, {9, 17}, {64, 48}, {100, 1}, {1, 100}} {
		c := pinhole(size[0], size[1])
		for _, mode := range []string{"ball", "sparse", "wild", "full"} {
			m := scene(&c, 2)
			for i := range m.Depth {
				switch {
				case mode == "sparse" && random.IntN(4) == 0, mode == "wild":
					m.Depth[i] = uint16(1 + random.IntN(65535))
				case mode == "sparse":
					m.Depth[i] = 0
				case mode == "full":
					m.Depth[i] = 700
				}
			}
			frame, points, err := new(encoder).EncodeRaster([]byte("x"), &c, m, whole(&c, c.Unit))
			if err != nil {
				t.Fatal(err)
			}
			var r codec.Raster
			if err := new(decoder).DecodeRaster(&r, frame[1:]); err != nil {
				t.Fatalf("%v %s: %v", size, mode, err)
			}
			found := 0
			for i, d := range m.Depth {
				if d == 0 {
					continue
				}
				found++
				at := image.Pt(i%c.Width, i/c.Width).Sub(r.Rect.Min)
				got, want := float64(r.Depths[at.Y*r.Rect.Dx()+at.X]), float64(d)*c.Unit
				if math.Abs(got-want) > 1e-5*got {
					t.Fatalf("%v %s: depth of pixel %v is %g m, want %g", size, mode, at, got, want)
				}
			}
			if found != points || len(frame) == 1 != (found == 0) {
				t.Errorf("%v %s: %d points in %d bytes, want %d", size, mode, points, len(frame)-1, found)
			}
			decoded := 0
			for _, d := range r.Depths {
				if d != 0 {
					decoded++
				}
			}
			if decoded != found {
				t.Errorf("%v %s: %d points are decoded, want %d", size, mode, decoded, found)
			}
		}
	}
}

// TestPoints compares the points of a decoded cloud with those of the Projector.
func TestPoints(t *testing.T) {
	lens := pinhole(480, 360)
	lens.Distortion = depth.Distortion{Model: depth.Rational,
		Coefficients: [8]float64{0.45, -2.5, 0.0006, -0.0003, 1.4, 0.33, -2.3, 1.35}}
	for name, c := range map[string]depth.Camera{"pinhole": pinhole(120, 90), "posed": posed(pinhole(120, 90)),
		"lens": lens, "posed lens": posed(lens)} {
		m := scene(&c, 0)
		var want, got pointcloud.Cloud
		projector, err := depth.NewProjector(c, depth.Options{Cleaning: depth.Cleaning{EdgeRatio: 0.02}})
		if err != nil {
			t.Fatal(err)
		}
		if err := projector.Project(m, &want); err != nil {
			t.Fatal(err)
		}
		p := whole(&c, c.Unit)
		p.ColorQuality = 95
		frame := mustEncode(t, &c, m, p)
		if err := new(decoder).Decode(&got, frame); err != nil {
			t.Fatal(err)
		}
		if got.Len() != want.Len() || len(got.Colors) != want.Len() {
			t.Fatalf("%s: %d points and %d colours, want %d", name, got.Len(), len(got.Colors), want.Len())
		}
		// A tenth of a millimetre is a fifth of the step of the finest quality.
		for i, at := range want.Positions {
			for axis, v := range at {
				if d := math.Abs(float64(got.Positions[i][axis] - v)); d > 1e-4 {
					t.Fatalf("%s: point %d is at %v, want %v", name, i, got.Positions[i], at)
				}
				if d := int(got.Colors[i][axis]) - int(want.Colors[i][axis]); d*d > 40*40 {
					t.Fatalf("%s: point %d has colour %v, want %v", name, i, got.Colors[i], want.Colors[i])
				}
			}
		}
		if n, err := new(decoder).Announced(frame); err != nil || n != got.Len() {
			t.Errorf("%s: frame announces %d points, %v, want %d", name, n, err, got.Len())
		}
	}
}

// TestPlainWall encodes and decodes a wall, whose frame would need fewer bytes than its pixels must have.
func TestPlainWall(t *testing.T) {
	c := pinhole(1280, 960)
	m := &depth.Image{Depth: make([]uint16, c.Width*c.Height), Colors: make([][3]uint8, c.Width*c.Height)}
	for i := range m.Depth {
		m.Depth[i], m.Colors[i] = 2000, [3]uint8{128, 128, 128}
	}
	for _, file := range []bool{false, true} {
		params := whole(&c, 0.001)
		params.File = file
		frame := mustEncode(t, &c, m, params)
		if codec.MissingBytes(len(frame), len(m.Depth)) > 0 {
			t.Errorf("%d pixels in %d bytes", len(m.Depth), len(frame))
		}
		var cloud pointcloud.Cloud
		if err := new(decoder).Decode(&cloud, frame); err != nil || cloud.Len() != len(m.Depth) {
			t.Errorf("%d points of %d: %v", cloud.Len(), len(m.Depth), err)
		}
	}
}

// TestSteps checks the error of depths for both kinds of steps.
func TestSteps(t *testing.T) {
	c := pinhole(64, 64)
	c.Unit = 0.0001
	m := scene(&c, 20)
	for _, growing := range []bool{false, true} {
		for _, step := range []float64{0.0002, 0.00065, 0.003} {
			p := whole(&c, step)
			p.Growing = growing
			var r codec.Raster
			if err := new(decoder).DecodeRaster(&r, mustEncode(t, &c, m, p)); err != nil {
				t.Fatal(err)
			}
			for i, d := range m.Depth {
				at := image.Pt(i%c.Width, i/c.Width).Sub(r.Rect.Min)
				if d == 0 {
					continue
				}
				z, limit := float64(d)*c.Unit, 0.5*step
				if growing {
					limit *= z * z * 1.01
				}
				if got := float64(r.Depths[at.Y*r.Rect.Dx()+at.X]); math.Abs(got-z) > limit+1e-6 {
					t.Fatalf("step %g, growing %v: depth %g m, want %g ± %g", step, growing, got, z, limit)
				}
			}
		}
	}
}

// TestReduction checks that reduced rasters keep the surface, and that tiles of a raster line up.
func TestReduction(t *testing.T) {
	c := posed(pinhole(130, 90))
	m := scene(&c, 1)
	for reduction := range codec.MaxReduction + 1 {
		p := whole(&c, 0.001)
		p.Reduction = reduction
		var all, sum, part pointcloud.Cloud
		if err := new(decoder).Decode(&all, mustEncode(t, &c, m, p)); err != nil {
			t.Fatal(err)
		}
		for _, rect := range []image.Rectangle{image.Rect(0, 0, 64, 48), image.Rect(64, 0, 130, 48),
			image.Rect(0, 48, 64, 90), image.Rect(64, 48, 130, 90)} {
			p.Rect = rect
			if err := new(decoder).Decode(&part, mustEncode(t, &c, m, p)); err != nil {
				t.Fatal(err)
			}
			for i := range part.Positions {
				sum.Append(part.Positions[i], [3]uint8{})
			}
		}
		for i := range all.Colors {
			all.Colors[i] = [3]uint8{}
		}
		if err := codectest.Same(&sum, &all); err != nil {
			t.Errorf("reduction %d: tiles: %v", reduction, err)
		}
		points := 0
		for _, d := range m.Depth {
			if d != 0 {
				points++
			}
		}
		if share := float64(all.Len()<<(2*reduction)) / float64(points); share < 0.9 || share > 1.1 {
			t.Errorf("reduction %d: %d of %d points", reduction, all.Len(), points)
		}
	}
}

// colorError returns the mean square error of the colours of a decoded scene.
func colorError(t *testing.T, c *depth.Camera, m *depth.Image, p codec.RasterParams) float64 {
	t.Helper()
	var r codec.Raster
	if err := new(decoder).DecodeRaster(&r, mustEncode(t, c, m, p)); err != nil {
		t.Fatal(err)
	}
	sum, count := 0.0, 0
	for i, depth := range r.Depths {
		if depth == 0 {
			continue
		}
		at := r.Rect.Min.Add(image.Pt(i%r.Rect.Dx(), i/r.Rect.Dx()))
		for channel, v := range m.Colors[at.Y*c.Width+at.X] {
			d := float64(v) - float64(r.Colors[i][channel])
			sum += d * d
			count++
		}
	}
	return sum / float64(count)
}

// TestColors checks kinds and qualities of colours.
func TestColors(t *testing.T) {
	c := pinhole(200, 120)
	m := scene(&c, 1)
	for name, kind := range map[string]codec.RasterParams{"JPEG": {}, "complete JPEG": {File: true},
		"WebP": {WebP: true}} {
		if err := webp.Available(); kind.WebP && err != nil {
			t.Logf("WebP is not checked: %v", err)
			continue
		}
		last := math.Inf(1)
		for _, quality := range []int{30, 60, 90} {
			p := whole(&c, 0.001)
			p.ColorQuality, p.File, p.WebP = quality, kind.File, kind.WebP
			mse := colorError(t, &c, m, p)
			if mse > last || mse > 60 {
				t.Errorf("%s, quality %d: mean square error is %.1f, want at most %.1f", name, quality, mse,
					min(last, 60))
			}
			last = mse
		}
	}
	p := whole(&c, 0.001)
	p.NoColors = true
	var plain pointcloud.Cloud
	if err := new(decoder).Decode(&plain, mustEncode(t, &c, m, p)); err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(plain.Colors, func(c [3]uint8) bool { return c != codec.White }) {
		t.Error("points without colours are not white")
	}
}

// TestInvalidParams checks that images and parameters that cannot be encoded are refused.
func TestInvalidParams(t *testing.T) {
	good := pinhole(64, 64)
	for name, change := range map[string]func(c *depth.Camera, m *depth.Image, p *codec.RasterParams){
		"camera":     func(c *depth.Camera, _ *depth.Image, _ *codec.RasterParams) { c.FX = math.NaN() },
		"size":       func(_ *depth.Camera, m *depth.Image, _ *codec.RasterParams) { m.Depth = m.Depth[1:] },
		"no colours": func(_ *depth.Camera, m *depth.Image, _ *codec.RasterParams) { m.Colors = nil },
		"reduction":  func(_ *depth.Camera, _ *depth.Image, p *codec.RasterParams) { p.Reduction = 3 },
		"no step":    func(_ *depth.Camera, _ *depth.Image, p *codec.RasterParams) { p.Step = math.NaN() },
		"fine step":  func(_ *depth.Camera, _ *depth.Image, p *codec.RasterParams) { p.Step = 1e-6 },
		"quality":    func(_ *depth.Camera, _ *depth.Image, p *codec.RasterParams) { p.ColorQuality = 101 },
		"outside":    func(_ *depth.Camera, _ *depth.Image, p *codec.RasterParams) { p.Rect.Max.X = 65 },
		"empty":      func(_ *depth.Camera, _ *depth.Image, p *codec.RasterParams) { p.Rect.Max.X = 0 },
		"unaligned":  func(_ *depth.Camera, _ *depth.Image, p *codec.RasterParams) { p.Reduction, p.Rect.Min.X = 2, 2 },
	} {
		c, m, p := good, scene(&good, 0), whole(&good, 0.001)
		change(&c, m, &p)
		frame, _, err := new(encoder).EncodeRaster([]byte("x"), &c, m, p)
		if !errors.Is(err, codec.ErrParams) || string(frame) != "x" {
			t.Errorf("%s: got %q, %v, want an error around ErrParams", name, frame, err)
		}
	}
	// A flat wall without colours takes less than a byte per 64 pixels.
	c := pinhole(1000, 1000)
	m := &depth.Image{Depth: make([]uint16, 1e6)}
	for i := range m.Depth {
		m.Depth[i] = 1000
	}
	p := whole(&c, 0.001)
	p.NoColors = true
	if _, _, err := new(encoder).EncodeRaster(nil, &c, m, p); !errors.Is(err, codec.ErrParams) {
		t.Errorf("a flat wall: %v, want an error around ErrParams", err)
	}
	if _, err := new(encoder).Encode(nil, codectest.Cloud(1, 10), codec.Params{}); !errors.Is(err, ErrCloud) {
		t.Errorf("a cloud: %v, want ErrCloud", err)
	}
	if frame, err := new(encoder).Encode(nil, new(pointcloud.Cloud), codec.Params{}); err != nil || len(frame) > 0 {
		t.Errorf("a cloud without points: %q, %v, want nothing", frame, err)
	}
}

// TestMalformed checks frames with one wrong value, and all truncated frames.
func TestMalformed(t *testing.T) {
	c := posed(pinhole(64, 48))
	c.Distortion = depth.Distortion{Model: depth.BrownConrady, Coefficients: [8]float64{0.01}}
	frame := mustEncode(t, &c, scene(&c, 1), whole(&c, 0.001))
	nan := []byte{0, 0, 0xc0, 0x7f}
	for name, change := range map[string]struct {
		at    int
		bytes []byte
	}{
		"flags": {1, []byte{0xff}}, "reduction": {2, []byte{3}}, "colours": {3, []byte{9}}, "quality": {4, []byte{0}},
		"quality 101": {4, []byte{101}}, "model": {5, []byte{77}}, "no model": {5, []byte{0}}, "zero": {6, []byte{1}},
		"width": {12, []byte{1, 0}}, "left": {16, []byte{60, 0}}, "no rows": {22, []byte{0, 0}},
		"points": {24, []byte{1, 0, 0, 0}}, "no points": {24, []byte{0, 0, 0, 0}},
		"many points": {24, []byte{0xff, 0xff, 0xff, 0xff}}, "nearest": {28, []byte{0, 0, 0, 0}},
		"farthest": {28, []byte{0xff, 0xff, 0xff, 0xff}}, "step": {32, nan}, "no step": {32, []byte{0, 0, 0, 0}},
		"planes": {36, []byte{0xff, 0xff, 0, 0}}, "no planes": {36, []byte{0, 0, 0, 0}}, "focal length": {40, nan},
		"principal point": {48, nan}, "place": {56, nan}, "turn": {68, nan}, "coefficient": {84, nan},
	} {
		data := slices.Clone(frame)
		copy(data[change.at:], change.bytes)
		checkMalformed(t, name, data)
	}
	for size := 1; size < len(frame); size++ {
		checkMalformed(t, "truncated", frame[:size])
	}
	checkMalformed(t, "trailing byte", append(slices.Clone(frame), 0))
	h := head{}
	rest, err := h.parse(frame)
	if err != nil {
		t.Fatal(err)
	}
	at := len(frame) - len(rest) + h.planes
	longer := slices.Insert(slices.Clone(frame), at, 0)
	longer[planesOffset]++
	checkMalformed(t, "byte behind the depths", longer)
	unknown := slices.Clone(frame)
	unknown[0] = 3
	var cloud pointcloud.Cloud
	if err := new(decoder).Decode(&cloud, unknown); !errors.Is(err, codec.ErrUnknown) || cloud.Len() > 0 {
		t.Errorf("version 3: %v, want an error around ErrUnknown", err)
	}
}

func checkMalformed(t *testing.T, name string, data []byte) {
	t.Helper()
	cloud := codectest.Cloud(1, 10)
	if err := new(decoder).Decode(cloud, data); !errors.Is(err, codec.ErrMalformed) || cloud.Len() > 0 {
		t.Errorf("%s: %v and %d points, want an error around ErrMalformed and none", name, err, cloud.Len())
	}
	raster := codec.Raster{Depths: make([]float32, 10)}
	if err := new(decoder).DecodeRaster(&raster, data); err == nil || len(raster.Depths) > 0 {
		t.Errorf("%s: %v and %d pixels of a raster, want an error and none", name, err, len(raster.Depths))
	}
}
