//go:build cgo && !portable

package dracojpeg

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"image/jpeg"
	"math"
	"slices"
	"testing"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/codectest"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/test/allocations"
)

func TestCodec(t *testing.T) { codectest.Test(t, dracojpeg{}) }

// mustEncode and mustDecode fail the test on error.
func mustEncode(t testing.TB, cloud *pointcloud.Cloud, params codec.Params) []byte {
	t.Helper()
	frame, err := dracojpeg{}.NewEncoder().Encode(nil, cloud, params)
	if err != nil {
		t.Fatal(err)
	}
	return frame
}

func mustDecode(t testing.TB, frame []byte) *pointcloud.Cloud {
	t.Helper()
	cloud := new(pointcloud.Cloud)
	if err := (dracojpeg{}).NewDecoder().Decode(cloud, frame); err != nil {
		t.Fatal(err)
	}
	return cloud
}

func params(quality int) codec.Params {
	return codec.Params{PositionBits: 11, Speed: 10, Box: codectest.Box, ColorQuality: quality}
}

// shaded returns a cloud whose colours change slowly in space, as those of real objects do.
func shaded(points int) *pointcloud.Cloud {
	cloud := codectest.Cloud(1, points)
	for i, p := range cloud.Positions {
		for axis := range p {
			low, high := codectest.Box.Min[axis], codectest.Box.Max[axis]
			cloud.Colors[i][axis] = uint8(55 + 150*(p[axis]-low)/(high-low))
		}
	}
	return cloud
}

// colorError returns the mean square error of colours. Points are identified by their position.
func colorError(t *testing.T, cloud *pointcloud.Cloud, quality int) float64 {
	t.Helper()
	frame, order, err := dracojpeg{}.NewEncoder().(codec.OrderedEncoder).EncodeOrdered(nil, nil, cloud, params(quality))
	if err != nil {
		t.Fatal(err)
	}
	decoded := mustDecode(t, frame)
	sum := 0.0
	for i, at := range order {
		for channel := range 3 {
			d := float64(decoded.Colors[i][channel]) - float64(cloud.Colors[at][channel])
			sum += d * d
		}
	}
	return sum / float64(3*cloud.Len())
}

// TestQuality expects colours at their original positions. A higher quality has a smaller error and
// more bytes.
func TestQuality(t *testing.T) {
	for _, points := range []int{1, 255, 256, 257, 4096, 4097, 20000} {
		cloud := shaded(points)
		last, size := math.Inf(1), 0
		for _, quality := range []int{30, 60, 90, 100} {
			mse, bytes := colorError(t, cloud, quality), len(mustEncode(t, cloud, params(quality)))
			if points >= 4096 && (mse >= last || bytes <= size) {
				t.Errorf(
					"%d points: mean square error %.2f and %d bytes at quality %d, "+
						"want less than %.2f and more than %d",
					points,
					mse,
					bytes,
					quality,
					last,
					size,
				)
			}
			last, size = mse, bytes
		}
		// At the best quality the remaining error is the halved chroma, for colours that change by
		// up to 150 / cube root of the number of points from one point to the next.
		if limit := 4 + square(150/math.Cbrt(float64(points))); last > limit {
			t.Errorf("%d points: mean square error %.2f at quality 100, want at most %.2f", points, last, limit)
		}
	}
	if a, b := mustEncode(
		t,
		shaded(500),
		params(0),
	), mustEncode(
		t,
		shaded(500),
		params(codec.DefaultColorQuality),
	); !bytes.Equal(
		a,
		b,
	) {
		t.Error("quality 0 is not the default")
	}
}

func square(v float64) float64 { return v * v }

// TestRealColors expects at least 40 % fewer bytes for a capture of a person than with exact
// colours, with errors like those of a good photograph.
func TestRealColors(t *testing.T) {
	cloud := codectest.RealCloud(t)
	p := codec.Params{PositionBits: 11, Speed: 10, Box: cloud.Bounds()}
	exact, err := geometry.NewEncoder().Encode(nil, cloud, p)
	if err != nil {
		t.Fatal(err)
	}
	lossy, order, err := dracojpeg{}.NewEncoder().(codec.OrderedEncoder).EncodeOrdered(nil, nil, cloud, p)
	if err != nil {
		t.Fatal(err)
	}
	if share := float64(len(lossy)) / float64(len(exact)); share > 0.6 {
		t.Errorf("%d bytes, %.0f %% of %d with exact colours, want at most 60 %%", len(lossy), 100*share, len(exact))
	}
	decoded := mustDecode(t, lossy)
	sum := 0.0
	for i, at := range order {
		light := func(c [3]uint8) float64 { return 0.2126*float64(c[0]) + 0.7152*float64(c[1]) + 0.0722*float64(c[2]) }
		sum += square(light(decoded.Colors[i]) - light(cloud.Colors[at]))
	}
	if psnr := 10 * math.Log10(255*255*float64(cloud.Len())/sum); psnr < 35 {
		t.Errorf("luma has a peak signal-to-noise ratio of %.1f dB, want at least 35", psnr)
	}
}

// TestLayout expects one pixel per point, with consecutive points of a square next to each other.
func TestLayout(t *testing.T) {
	for _, points := range []int{1, 256, 257, 4096, 4097, 70000} {
		l := layoutOf(points)
		colors, order := make([][3]uint8, points), make([]uint32, points)
		for i := range colors {
			order[i] = uint32(points - 1 - i)
			colors[order[i]] = [3]uint8{uint8(i), uint8(i >> 8), uint8(i >> 16)}
		}
		painted := l.paint(nil, colors, order)
		got := make([][3]uint8, points)
		l.read(got, painted)
		for i, color := range got {
			if color != colors[order[i]] {
				t.Fatalf("%d points: point %d is %v, want %v", points, i, color, colors[order[i]])
			}
		}
		if l.width%squareEdge != 0 || l.height%squareEdge != 0 || l.width*l.height < points ||
			l.width*l.height >= points+mostSquares*squarePoints {
			t.Errorf("%d points: the image is %d×%d", points, l.width, l.height)
		}
	}
	for i := 1; i < len(curve); i++ {
		a, b := int(curve[i-1]), int(curve[i])
		if distance := max(
			a/squareEdge-b/squareEdge,
			b/squareEdge-a/squareEdge,
		) + max(
			a%squareEdge-b%squareEdge,
			b%squareEdge-a%squareEdge,
		); distance != 1 {
			t.Fatalf("points %d and %d are %d pixels from each other, want 1", i-1, i, distance)
		}
	}
}

// TestWholeImage puts the tables of a JPEG file in front of the image and decodes it with Go's
// decoder.
func TestWholeImage(t *testing.T) {
	const quality = 75
	cloud := shaded(3000)
	frame := mustEncode(t, cloud, params(quality))
	abbreviated := frame[headerBytes+binary.LittleEndian.Uint32(frame):]
	// Go's encoder uses the tables of the same annexes, scaled in the same way.
	var other bytes.Buffer
	if err := jpeg.Encode(
		&other,
		image.NewRGBA(image.Rect(0, 0, 16, 16)),
		&jpeg.Options{Quality: quality},
	); err != nil {
		t.Fatal(err)
	}
	file := append([]byte{}, abbreviated[:2]...)
	for _, marker := range []byte{0xdb, 0xc4} {
		file = append(file, segment(t, other.Bytes(), marker)...)
	}
	file = append(file, abbreviated[2:]...)
	picture, err := jpeg.Decode(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	l := layoutOf(cloud.Len())
	pixels := make([]byte, 0, l.size())
	for y := range l.height {
		for x := range l.width {
			r, g, b, _ := picture.At(x, y).RGBA()
			pixels = append(pixels, uint8(r>>8), uint8(g>>8), uint8(b>>8))
		}
	}
	got := make([][3]uint8, cloud.Len())
	l.read(got, pixels)
	for i, want := range mustDecode(t, frame).Colors {
		for channel := range want {
			if d := int(got[i][channel]) - int(want[channel]); d < -4 || d > 4 {
				t.Fatalf("point %d is %v, want about %v", i, got[i], want)
			}
		}
	}
}

// segment returns a marker segment of a JPEG file.
func segment(t *testing.T, file []byte, marker byte) []byte {
	t.Helper()
	at := bytes.Index(file, []byte{0xff, marker})
	if at < 0 {
		t.Fatalf("no marker %x", marker)
	}
	return file[at : at+2+int(binary.BigEndian.Uint16(file[at+2:]))]
}

// TestTablesDoNotLast expects that an image with its own tables does not affect the next image.
func TestTablesDoNotLast(t *testing.T) {
	cloud := shaded(1000)
	frame := mustEncode(t, cloud, params(80))
	d := dracojpeg{}.NewDecoder()
	want, got := new(pointcloud.Cloud), new(pointcloud.Cloud)
	if err := d.Decode(want, frame); err != nil {
		t.Fatal(err)
	}
	var other bytes.Buffer
	if err := jpeg.Encode(&other, image.NewRGBA(image.Rect(0, 0, 16, 16)), &jpeg.Options{Quality: 5}); err != nil {
		t.Fatal(err)
	}
	at := headerBytes + int(binary.LittleEndian.Uint32(frame)) + 2
	foreign := slices.Insert(slices.Clone(frame), at, segment(t, other.Bytes(), 0xdb)...)
	if err := d.Decode(got, foreign); err != nil || slices.Equal(got.Colors, want.Colors) {
		t.Fatalf(
			"an image with coarser tables: %v, and the same colours: %v",
			err,
			slices.Equal(got.Colors, want.Colors),
		)
	}
	if err := d.Decode(got, frame); err != nil || !slices.Equal(got.Colors, want.Colors) {
		t.Errorf(
			"after an image with tables of its own: %v, and the same colours: %v",
			err,
			slices.Equal(got.Colors, want.Colors),
		)
	}
}

// TestMalformed tests frames that random bits do not produce.
func TestMalformed(t *testing.T) {
	frame := mustEncode(t, shaded(1000), params(80))
	size := int(binary.LittleEndian.Uint32(frame))
	other := mustEncode(t, shaded(300), params(80))
	otherImage := other[headerBytes+int(binary.LittleEndian.Uint32(other)):]
	for name, data := range map[string][]byte{
		"short":                  frame[:headerBytes-1],
		"no geometry":            append([]byte{0, 0, 0, 0, 80}, frame[headerBytes+size:]...),
		"too long a geometry":    append([]byte{255, 255, 255, 255}, frame[4:]...),
		"quality 101":            append(append(slices.Clone(frame[:4]), 101), frame[5:]...),
		"image without quality":  append(append(slices.Clone(frame[:4]), 0), frame[5:]...),
		"no image":               frame[:headerBytes+size],
		"image of other size":    append(slices.Clone(frame[:headerBytes+size]), otherImage...),
		"image that never ends":  frame[:len(frame)-2],
		"progressive image":      bytes.Replace(frame, []byte{0xff, 0xc0}, []byte{0xff, 0xc2}, 1),
		"something behind image": append(slices.Clone(frame), 0),
	} {
		cloud := shaded(10)
		if err := (dracojpeg{}).NewDecoder().
			Decode(cloud, data); !errors.Is(err, codec.ErrMalformed) ||
			cloud.Len() != 0 {
			t.Errorf("%s: got %v and %d points, want ErrMalformed and none", name, err, cloud.Len())
		}
	}
}

func TestNoAllocations(t *testing.T) {
	cloud, e, d := shaded(5000), dracojpeg{}.NewEncoder(), dracojpeg{}.NewDecoder()
	var frame []byte
	decoded := new(pointcloud.Cloud)
	n := allocations.PerCall(20, func() {
		var err error
		if frame, err = e.Encode(frame[:0], cloud, params(85)); err != nil {
			t.Fatal(err)
		}
		if err = d.Decode(decoded, frame); err != nil {
			t.Fatal(err)
		}
	})
	if n > 0 {
		t.Errorf("%.1f allocations per frame, want none", n)
	}
}

// FuzzDecode expects for any frame either an error that wraps ErrMalformed and no points, or as
// many colours as points.
func FuzzDecode(f *testing.F) {
	for _, points := range []int{1, 300} {
		for _, quality := range []int{1, 85} {
			f.Add(mustEncode(f, shaded(points), params(quality)))
		}
	}
	p := params(0)
	p.NoColors = true
	f.Add(mustEncode(f, shaded(20), p))
	codectest.Seeds(f, dracojpeg{}.FourCC())
	f.Fuzz(func(t *testing.T, data []byte) {
		cloud := new(pointcloud.Cloud)
		_ = codectest.Decode(t, dracojpeg{}.NewDecoder(), cloud, data)
		if len(cloud.Colors) != cloud.Len() {
			t.Fatalf("%d colours of %d points", len(cloud.Colors), cloud.Len())
		}
	})
}

func BenchmarkReal(b *testing.B) {
	cloud := codectest.Sampled(codectest.RealCloud(b), 40000)
	p := codec.Params{PositionBits: 11, Speed: 10, Box: cloud.Bounds()}
	for _, c := range []codec.Codec{geometry, dracojpeg{}} {
		e, d := c.NewEncoder(), c.NewDecoder()
		frame, err := e.Encode(nil, cloud, p)
		if err != nil {
			b.Fatal(err)
		}
		decoded := new(pointcloud.Cloud)
		b.Run(c.Name()+"/encode", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if frame, err = e.Encode(frame[:0], cloud, p); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(8*len(frame))/float64(cloud.Len()), "bits/point")
		})
		b.Run(c.Name()+"/decode", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := d.Decode(decoded, frame); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
