package rgbd

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"hash/fnv"
	"image"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/codectest"
	"github.com/volsfu/volsfu/pkg/codec/webp"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

var update = flag.Bool("update", false, "write the test vectors")

// vector is a frame with the result of decoding, for this and other implementations.
type vector struct {
	Name string             `json:"name"`
	Data codectest.HexBytes `json:"data"`
	// Error is "malformed" or "unknown", or empty for a valid frame, which the following fields describe.
	Error  string `json:"error,omitempty"`
	Points int    `json:"points,omitempty"`
	// Rect is left, top, columns and rows of the reduced raster.
	Rect [4]int `json:"rect,omitzero"`
	// DepthSum is the 32-bit FNV-1a sum of all depths of the rectangle in metres, row by row, as little-endian float32,
	// with 0 for pixels without a point. PositionSum is that of the positions; with a lens distortion, positions of
	// other implementations may differ by 1e-6 m, and only Center is compared, the mean position.
	DepthSum    uint32     `json:"depth_sum,omitempty"`
	PositionSum uint32     `json:"position_sum,omitempty"`
	Distorted   bool       `json:"distorted,omitempty"`
	Center      [3]float64 `json:"center,omitzero"`
	// Color is the mean colour of the points. JPEG decoders differ by a few levels.
	Color [3]float64 `json:"color,omitzero"`
}

const vectorsFile = "testdata/vectors.json"

// TestVectors checks the decoder against testdata/vectors.json, which other implementations use, too. With -update it
// writes the file.
func TestVectors(t *testing.T) {
	if *update {
		text, err := json.MarshalIndent(vectors(t), "", " ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(vectorsFile), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(vectorsFile, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(vectorsFile)
	if err != nil {
		t.Fatal(err)
	}
	var all []vector
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	for _, want := range all {
		got, err := described(want.Name, want.Data)
		if want.Error != "" {
			if got.Error != want.Error {
				t.Errorf("%s: %v, want an error of kind %q", want.Name, err, want.Error)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", want.Name, err)
			continue
		}
		for i := range 3 {
			if math.Abs(got.Color[i]-want.Color[i]) > 3 || math.Abs(got.Center[i]-want.Center[i]) > 1e-6 {
				t.Errorf("%s: mean %v of colour %v, want %v of %v", want.Name, got.Center, got.Color, want.Center,
					want.Color)
			}
		}
		if want.Distorted {
			got.PositionSum = want.PositionSum
		}
		got.Color, got.Center = want.Color, want.Center
		if got.Points != want.Points || got.Rect != want.Rect || got.DepthSum != want.DepthSum ||
			got.PositionSum != want.PositionSum {
			t.Errorf("%s: %+v, want %+v", want.Name, got, want)
		}
	}
}

// described decodes a frame and describes the result.
func described(name string, data []byte) (v vector, err error) {
	v = vector{Name: name, Data: data}
	var raster codec.Raster
	var cloud pointcloud.Cloud
	d := new(decoder)
	if err = errors.Join(d.DecodeRaster(&raster, data), d.Decode(&cloud, data)); err != nil {
		v.Error = "malformed"
		if errors.Is(err, codec.ErrUnknown) {
			v.Error = "unknown"
		}
		return v, err
	}
	v.Points = cloud.Len()
	v.Rect = [4]int{raster.Rect.Min.X, raster.Rect.Min.Y, raster.Rect.Dx(), raster.Rect.Dy()}
	v.DepthSum, v.Distorted = sumOf(raster.Depths), raster.Camera.Distortion.Model != depth.None
	var flat []float32
	for i, p := range cloud.Positions {
		flat = append(flat, p[:]...)
		for axis := range p {
			v.Center[axis] += float64(p[axis]) / float64(cloud.Len())
			v.Color[axis] += float64(cloud.Colors[i][axis]) / float64(cloud.Len())
		}
	}
	v.PositionSum = sumOf(flat)
	return v, nil
}

func sumOf(values []float32) uint32 {
	h := fnv.New32a()
	for _, v := range values {
		_, _ = h.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)))
	}
	return h.Sum32()
}

// vectors returns frames of all variants, and frames with an error.
func vectors(t testing.TB) (all []vector) {
	add := func(name string, data []byte) {
		v, _ := described(name, data)
		all = append(all, v)
	}
	plain := pinhole(48, 40)
	lens := posed(pinhole(48, 40))
	lens.Distortion = depth.Distortion{Model: depth.Rational,
		Coefficients: [8]float64{0.45, -2.5, 0.0006, -0.0003, 1.4, 0.33, -2.3, 1.35}, Radius: 1.7}
	noisy := scene(&plain, 2)
	mixed := scene(&plain, 2)
	for i := range mixed.Depth {
		if i%7 == 0 {
			mixed.Depth[i] = 0
		} else if i%31 == 0 {
			mixed.Depth[i] = uint16(i * 40)
		}
	}
	p := whole(&plain, 0.001)
	bare := p
	bare.NoColors = true
	add("pinhole", mustEncode(t, &plain, noisy, p))
	add("without colours", mustEncode(t, &plain, noisy, bare))
	add("holes and far pixels", mustEncode(t, &plain, mixed, bare))
	turned := posed(plain)
	add("pose", mustEncode(t, &turned, noisy, bare))
	fine := bare
	fine.Step = 0.00002
	add("fine steps", mustEncode(t, &plain, noisy, fine))
	growing := bare
	growing.Growing = true
	add("growing steps", mustEncode(t, &plain, noisy, growing))
	file := p
	file.File = true
	add("complete JPEG", mustEncode(t, &plain, noisy, file))
	if webp.Available() == nil {
		compressed := p
		compressed.WebP = true
		add("WebP", mustEncode(t, &plain, noisy, compressed))
	} else if *update {
		t.Fatal(webp.Available())
	}
	for reduction := 1; reduction <= codec.MaxReduction; reduction++ {
		half := p
		half.Reduction, half.CameraID = reduction, 7
		add("reduction "+string(rune('0'+reduction)), mustEncode(t, &plain, noisy, half))
	}
	corner := bare
	corner.Rect = image.Rect(16, 8, 40, 32)
	add("rectangle", mustEncode(t, &plain, noisy, corner))
	add("lens and pose", mustEncode(t, &lens, noisy, bare))
	one := &depth.Image{Depth: make([]uint16, len(noisy.Depth))}
	one.Depth[5] = 1234
	add("one pixel", mustEncode(t, &plain, one, bare))

	frame := mustEncode(t, &plain, noisy, p)
	changed := func(name string, at int, bytes ...byte) {
		data := slices.Clone(frame)
		copy(data[at:], bytes)
		add(name, data)
	}
	changed("version 2", 0, 2)
	changed("JPEG as WebP", 3, kindWebP, 0)
	changed("unknown flags", 1, 8)
	changed("quality 0", 4, 0)
	changed("reserved byte", 6, 1)
	changed("a raster smaller than the rectangle", 12, 10, 0)
	changed("one point too few", 24, frame[24]-1)
	changed("no nearest depth", 28, 0, 0, 0, 0)
	changed("a step that is not a number", 32, 0, 0, 0xc0, 0x7f)
	changed("a focal length of 0", 40, 0, 0, 0, 0)
	changed("more depths than bytes", planesOffset, 0xff, 0xff)
	changed("depths that end early", planesOffset, frame[planesOffset]-8)
	changed("other depths", fixedBytes+40, ^frame[fixedBytes+40])
	add("truncated", frame[:len(frame)-5])
	add("trailing byte", append(slices.Clone(frame), 0))
	large := slices.Clone(frame)
	for _, at := range []int{12, 14, 20, 22} {
		binary.LittleEndian.PutUint16(large[at:], 4000)
	}
	add("too many pixels for the bytes", large)
	return all
}

// FuzzDecode expects an error and no points for malformed frames, within bounds of memory and time.
func FuzzDecode(f *testing.F) {
	for _, v := range vectors(f) {
		f.Add([]byte(v.Data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d := new(decoder)
		var cloud pointcloud.Cloud
		err := codectest.Decode(t, d, &cloud, data)
		if len(cloud.Colors) != cloud.Len() {
			t.Fatalf("%d points and %d colours", cloud.Len(), len(cloud.Colors))
		}
		n, announced := d.Announced(data)
		if err == nil && len(data) > 0 && (announced != nil || n < cloud.Len()) {
			t.Fatalf("frame announces %d points, %v, and has %d", n, announced, cloud.Len())
		}
		for _, p := range cloud.Positions {
			for _, v := range p {
				if v-v != 0 {
					t.Fatalf("point is at %v", p)
				}
			}
		}
	})
}

// FuzzPlanes expects that depths of any image return.
func FuzzPlanes(f *testing.F) {
	f.Add(uint8(3), []byte{1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 255, 255})
	f.Fuzz(func(t *testing.T, width uint8, data []byte) {
		if width == 0 || len(data) < 2*int(width) {
			return
		}
		c := pinhole(int(width), len(data)/2/int(width))
		m := &depth.Image{Depth: make([]uint16, c.Width*c.Height)}
		for i := range m.Depth {
			m.Depth[i] = binary.LittleEndian.Uint16(data[2*i:])
		}
		p := whole(&c, c.Unit)
		p.NoColors = true
		frame, points, err := new(encoder).EncodeRaster(nil, &c, m, p)
		if err != nil {
			t.Fatal(err)
		}
		var raster codec.Raster
		if err := new(decoder).DecodeRaster(&raster, frame); err != nil {
			t.Fatal(err)
		}
		found := 0
		for i, z := range raster.Depths {
			at := raster.Rect.Min.Add(image.Pt(i%raster.Rect.Dx(), i/raster.Rect.Dx()))
			if d := m.Depth[at.Y*c.Width+at.X]; math.Abs(float64(z)-float64(d)*c.Unit) > 1e-5*float64(z) {
				t.Fatalf("depth of pixel %v is %g, want %g", at, z, float64(d)*c.Unit)
			}
			if z > 0 {
				found++
			}
		}
		if found != points {
			t.Fatalf("%d points, want %d", found, points)
		}
	})
}
