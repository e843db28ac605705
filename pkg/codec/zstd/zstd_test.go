package zstd

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/codectest"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/test/allocations"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestZstd(t *testing.T) { codectest.Test(t, Codec) }

var params = codec.Params{PositionBits: 11, Speed: 7, Box: codectest.Box}

func TestCurve(t *testing.T) {
	for _, c := range []struct {
		point [3]uint32
		place uint64
	}{{[3]uint32{}, 0}, {[3]uint32{1, 0, 0}, 1}, {[3]uint32{0, 1, 0}, 2}, {[3]uint32{0, 0, 1}, 4},
		{[3]uint32{2, 1, 3}, 0b101_110}, {[3]uint32{1<<14 - 1, 1<<14 - 1, 1<<14 - 1}, 1<<42 - 1}} {
		if got := mortonCode(c.point[0], c.point[1], c.point[2]); got != c.place {
			t.Errorf("%v is at %#b, want %#b", c.point, got, c.place)
		}
	}
	for v := uint32(0); v < 1<<14; v += 7 {
		point := [3]uint32{v, (v * 5) & (1<<14 - 1), (v * 11) & (1<<14 - 1)}
		if got := coordinatesOf(mortonCode(point[0], point[1], point[2])); got != point {
			t.Fatalf("%v comes back as %v", point, got)
		}
	}
}

// TestLayout expects the fixed layout of frames, because receivers of any version read it. Fifteen
// bits per coordinate leave one bit below the curve.
func TestLayout(t *testing.T) {
	box := params.Box
	box.Min, box.Max = [3]float32{}, [3]float32{32767, 32767, 32767}
	cloud := &pointcloud.Cloud{
		Positions: [][3]float32{{7, 0, 2}, {2, 1, 0}},
		Colors:    [][3]uint8{{10, 20, 30}, {1, 2, 255}},
	}
	frame, err := newEncoder().Encode(nil, cloud, codec.Params{PositionBits: 15, Speed: 10, Box: box})
	if err != nil {
		t.Fatal(err)
	}
	reader, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	planes, err := reader.DecodeAll(frame[codec.HeadBytes:], nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []byte{
		// (2, 1, 0) is (1, 0, 0) on the curve, at 1, and (7, 0, 2) is (3, 0, 1), at 1 + 8 + 4.
		1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		0, 1, 1, 0, 0, 0,
		2, 18, 255, 247, 253, 13,
	}
	if !slices.Equal(planes, want) {
		t.Errorf("got  %v\nwant %v", planes, want)
	}
}

func TestMalformed(t *testing.T) {
	writer, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = writer.Close() }()
	frame := func(points uint32, bits int, planes ...byte) []byte {
		head := codec.Head{Points: points, Params: codec.Params{PositionBits: bits, NoColors: true, Box: codectest.Box}}
		return writer.EncodeAll(planes, head.AppendTo(nil))
	}
	var cloud pointcloud.Cloud
	if err := newDecoder(t).Decode(&cloud, frame(1, 2, 63)); err != nil || cloud.Len() != 1 {
		t.Fatalf("a sound frame: %v", err)
	}
	for name, c := range map[string]struct {
		data []byte
		says string
	}{
		"off the curve":       {frame(1, 2, 64), "beyond the end of the curve"},
		"beyond in two steps": {frame(2, 2, 40, 40), "point 1 is beyond the end of the curve"},
		"sum that overflows":  {frame(3, 14, slices.Repeat([]byte{0xff}, 18)...), "beyond the end of the curve"},
		"below the curve": {frame(1, 15, 0, 0, 0, 0, 0, 0, 1, 2, 0),
			"coordinate 1 has 0x2 below the curve, expected 1 bits: point 0"},
		"too few planes":  {frame(2, 2, 1), "1 bytes decompressed, expected 2"},
		"too many planes": {frame(2, 2, slices.Repeat([]byte{0}, 1000)...), "malformed frame"},
		"too many points": {frame(1<<16+64*100, 2, 1), "expected at most"},
		"no planes":       {frame(1, 2, 1)[:codec.HeadBytes], "0 bytes decompressed, expected 1"},
	} {
		err := newDecoder(t).Decode(&cloud, c.data)
		if !errors.Is(err, codec.ErrMalformed) || !strings.Contains(fmt.Sprint(err), c.says) || cloud.Len() != 0 {
			t.Errorf("%s: got %d points and %v, want ErrMalformed that says %q", name, cloud.Len(), err, c.says)
		}
	}
}

func newDecoder(testing.TB) codec.Decoder { return Codec.NewDecoder() }

// TestPointsThatCoincide expects that a frame of a few bytes cannot make a receiver decode millions
// of points, and that the encoder reports the error before a receiver does.
func TestPointsThatCoincide(t *testing.T) {
	points := codec.FreePoints + codec.PointsPerByte*1000
	cloud := &pointcloud.Cloud{Positions: make([][3]float32, points), Colors: make([][3]uint8, points)}
	if _, err := newEncoder().Encode(nil, cloud, params); !errors.Is(err, codec.ErrParams) ||
		!strings.Contains(err.Error(), "coincide") {
		t.Errorf("got %v, want ErrParams", err)
	}
}

func TestSteadyStateDoesNotAllocate(t *testing.T) {
	cloud := codectest.Cloud(1, 5000)
	for _, speed := range Codec.Capabilities().Steps {
		params := params
		params.Speed = speed
		encoder, decoder := newEncoder(), Codec.NewDecoder()
		frame, order, err := encoder.EncodeOrdered(nil, nil, cloud, params)
		if err != nil {
			t.Fatal(err)
		}
		var into pointcloud.Cloud
		if err := decoder.Decode(&into, frame); err != nil {
			t.Fatal(err)
		}
		if n := allocations.PerCall(
			20,
			func() { frame, order, _ = encoder.EncodeOrdered(frame[:0], order, cloud, params) },
		); n != 0 {
			t.Errorf("speed %d: %v allocations per encoding, want 0", speed, n)
		}
		if n := allocations.PerCall(20, func() { _ = decoder.Decode(&into, frame) }); n != 0 {
			t.Errorf("speed %d: %v allocations per decoding, want 0", speed, n)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, bits := range []int{1, 11, 14, 15, 25, 30} {
		for _, plain := range []bool{false, true} {
			frame, err := newEncoder().Encode(nil, codectest.Cloud(1, 5*bits),
				codec.Params{PositionBits: bits, NoColors: plain, Box: codectest.Box})
			if err != nil {
				f.Fatal(err)
			}
			f.Add(frame)
		}
	}
	codectest.Seeds(f, Codec.FourCC())
	f.Fuzz(func(t *testing.T, data []byte) {
		var cloud pointcloud.Cloud
		if codectest.Decode(t, Codec.NewDecoder(), &cloud, data) != nil {
			return
		}
		if cloud.Len() != len(cloud.Colors) || cloud.Len() > codec.MostPoints(len(data), maxPoints) {
			t.Fatalf("%d positions and %d colours from %d bytes", cloud.Len(), len(cloud.Colors), len(data))
		}
		for _, p := range cloud.Positions {
			if (p[0]-p[0])+(p[1]-p[1])+(p[2]-p[2]) != 0 {
				t.Fatalf("%v is not in space", p)
			}
		}
	})
}

func BenchmarkZstd(b *testing.B) {
	whole := codectest.RealCloud(b)
	cloud := codectest.Sampled(whole, 40_000)
	for _, speed := range Codec.Capabilities().Steps {
		for _, plain := range []bool{false, true} {
			params := codec.Params{PositionBits: 11, Speed: speed, NoColors: plain, Box: whole.Bounds()}
			encoder, decoder := newEncoder(), Codec.NewDecoder()
			frame, err := encoder.Encode(nil, cloud, params)
			if err != nil {
				b.Fatal(err)
			}
			name := fmt.Sprintf("speed%d/colors=%v", speed, !plain)
			b.Run("encode/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					frame, _ = encoder.Encode(frame[:0], cloud, params)
				}
				b.ReportMetric(float64(8*len(frame))/float64(cloud.Len()), "bits/point")
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(cloud.Len()), "ns/point")
			})
			b.Run("decode/"+name, func(b *testing.B) {
				var into pointcloud.Cloud
				b.ReportAllocs()
				for b.Loop() {
					if err := decoder.Decode(&into, frame); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(cloud.Len()), "ns/point")
			})
		}
	}
}
