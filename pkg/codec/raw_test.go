package codec_test

import (
	"encoding/binary"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/codectest"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

func TestRaw(t *testing.T) { codectest.Test(t, codec.Raw) }

// TestRawLayout expects the fixed layout of frames, because receivers of any version read it.
func TestRawLayout(t *testing.T) {
	cloud := &pointcloud.Cloud{
		Positions: [][3]float32{{0, 1, 2}, {-1, 0.5, 3}},
		Colors:    [][3]uint8{{1, 2, 3}, {4, 5, 6}},
	}
	params := codec.Params{
		PositionBits: 10,
		Box:          volumetric.BoundingBox{Min: [3]float32{-1, 0, 2}, Max: [3]float32{0.5, 2, 3}},
	}
	got, err := codec.Raw.NewEncoder().Encode(nil, cloud, params)
	if err != nil {
		t.Fatal(err)
	}
	want := []byte{
		2, 0, 0, 0,
		0, 0, 0x80, 0xbf, 0, 0, 0, 0, 0, 0, 0, 0x40,
		0, 0, 0, 0x3f, 0, 0, 0, 0x40, 0, 0, 0x40, 0x40,
		10, 0, 0, 0,
		0, 2, 0, 2, 0, 0, // 512, 512 and 0 of 1023 steps along 2 m
		0, 0, 0, 1, 0, 2, // 0, 256, 512
		1, 2, 3, 4, 5, 6,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  % x\nwant % x", got, want)
	}
}

func TestRawMalformed(t *testing.T) {
	frame, err := codec.Raw.NewEncoder().
		Encode(nil, codectest.Cloud(1, 4), codec.Params{PositionBits: 10, Box: codectest.Box})
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		spoil func(b []byte)
		says  string
	}{
		"more points": {func(b []byte) { b[0]++ }, "frame of 5 points has 68 bytes, expected 77"},
		"absurd points": {
			func(b []byte) { binary.LittleEndian.PutUint32(b, 0xffffffff) },
			"4294967295 points in 68 bytes",
		},
		"no points":    {func(b []byte) { b[0] = 0 }, "no points"},
		"no bits":      {func(b []byte) { b[28] = 0 }, "0 position bits"},
		"other bits":   {func(b []byte) { b[28] = 17 }, "frame of 4 points has 68 bytes, expected 80"},
		"reserved":     {func(b []byte) { b[30] = 1 }, "reserved"},
		"box":          {func(b []byte) { copy(b[16:28], b[4:16]) }, "longest edge"},
		"off the grid": {func(b []byte) { b[33] = 4 }, "coordinate 0 of point 0"},
	}
	for name, c := range cases {
		spoilt := slices.Clone(frame)
		c.spoil(spoilt)
		var cloud pointcloud.Cloud
		if err := codec.Raw.NewDecoder().
			Decode(&cloud, spoilt); !errors.Is(err, codec.ErrMalformed) ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want ErrMalformed that says %q", name, err, c.says)
		}
	}
}

func FuzzRawDecode(f *testing.F) {
	for _, bits := range []int{1, 8, 11, 17, 30} {
		frame, err := codec.Raw.NewEncoder().
			Encode(nil, codectest.Cloud(1, bits), codec.Params{PositionBits: bits, Box: codectest.Box})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(frame)
	}
	codectest.Seeds(f, codec.Raw.FourCC())
	f.Fuzz(func(t *testing.T, data []byte) {
		var cloud pointcloud.Cloud
		if codectest.Decode(t, codec.Raw.NewDecoder(), &cloud, data) != nil {
			return
		}
		// A point takes at least three bytes: coordinates of up to 8 bits without colours.
		if cloud.Len() != len(cloud.Colors) || 3*cloud.Len() > len(data) {
			t.Fatalf("%d positions and %d colours from %d bytes", cloud.Len(), len(cloud.Colors), len(data))
		}
	})
}

func BenchmarkRaw(b *testing.B) {
	for _, points := range []int{10_000, 40_000} {
		cloud := codectest.Cloud(1, points)
		params := codec.Params{PositionBits: 11, Box: codectest.Box}
		encoder, decoder := codec.Raw.NewEncoder(), codec.Raw.NewDecoder()
		var frame []byte
		b.Run("encode/"+strconv.Itoa(points), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				frame, _ = encoder.Encode(frame[:0], cloud, params)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(points), "ns/point")
		})
		b.Run("decode/"+strconv.Itoa(points), func(b *testing.B) {
			var into pointcloud.Cloud
			frame, _ = encoder.Encode(frame[:0], cloud, params)
			b.ReportAllocs()
			for b.Loop() {
				if err := decoder.Decode(&into, frame); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(points), "ns/point")
		})
	}
}
