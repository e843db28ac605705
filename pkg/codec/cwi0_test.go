package codec_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/codectest"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

func TestCWI0(t *testing.T) { codectest.Test(t, codec.CWI0) }

// cwi0Sample returns a cloud of two points on the grid of its parameters, and its frame in the
// layout of VR2Gather's own clients.
func cwi0Sample() (*pointcloud.Cloud, codec.Params, []byte) {
	cloud := &pointcloud.Cloud{
		Positions: [][3]float32{{0, 1, 2}, {-1, 0.5, 3}},
		Colors:    [][3]uint8{{1, 2, 3}, {4, 5, 6}},
	}
	box := volumetric.BoundingBox{Min: [3]float32{-1, 0, 2}, Max: [3]float32{2, 2, 3}}
	return cloud, codec.Params{PositionBits: 2, Box: box}, []byte{
		'c', 'p', 'c', 'd', 0x08, 0x02, 0x21, 0x20,
		0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0,
		32, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0x80, 0x3f, 0, 0, 0, 0x40, 1, 2, 3, 0,
		0, 0, 0x80, 0xbf, 0, 0, 0x80, 0x3f, 0, 0, 0x40, 0x40, 4, 5, 6, 0,
	}
}

func TestCWI0Layout(t *testing.T) {
	cloud, params, want := cwi0Sample()
	got, err := codec.CWI0.NewEncoder().Encode(nil, cloud, params)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("got  % x and %v\nwant % x", got, err, want)
	}
}

// TestCWI0Foreign decodes frames as VR2Gather's clients send them: with capture time, point size
// and camera mask, and points on no grid.
func TestCWI0Foreign(t *testing.T) {
	_, _, frame := cwi0Sample()
	copy(frame[8:], []byte{1, 2, 3, 4, 5, 6, 7, 8})
	copy(frame[16:], []byte{0x0a, 0xd7, 0xa3, 0x3b, 0xff, 0xff, 0xff, 0xff})
	frame[47] = 0x81
	binary.LittleEndian.PutUint32(frame[32:], math.Float32bits(0.123456))
	// The third and the fourth point have no valid position.
	for _, nowhere := range []float64{math.NaN(), math.Inf(-1)} {
		frame = append(frame, frame[48:64]...)
		binary.LittleEndian.PutUint32(frame[len(frame)-8:], math.Float32bits(float32(nowhere)))
	}
	frame[24] = 64
	var cloud pointcloud.Cloud
	err := codec.CWI0.NewDecoder().Decode(&cloud, frame)
	want := pointcloud.Cloud{
		Positions: [][3]float32{{0.123456, 1, 2}, {-1, 1, 3}},
		Colors:    [][3]uint8{{1, 2, 3}, {4, 5, 6}},
	}
	if err != nil || !slices.Equal(cloud.Positions, want.Positions) || !slices.Equal(cloud.Colors, want.Colors) {
		t.Errorf("got %v and %v, want %v", cloud, err, want)
	}
}

func TestCWI0Malformed(t *testing.T) {
	cases := map[string]struct {
		spoil func(b []byte) []byte
		says  string
	}{
		"another format":  {func(b []byte) []byte { b[3] = 'x'; return b }, `begins with "cpcx"`},
		"another version": {func(b []byte) []byte { b[4] = 9; return b }, "version 0x20210209"},
		"half a header":   {func(b []byte) []byte { return b[:31] }, "31 bytes, expected at least 32"},
		"points missing":  {func(b []byte) []byte { return b[:48] }, "announces 32 bytes of points, 16 follow"},
		"absurd size": {
			func(b []byte) []byte { copy(b[24:], bytes.Repeat([]byte{0xff}, 8)); return b },
			"announces 18446744073709551615 bytes",
		},
		"half a point": {
			func(b []byte) []byte { b[24] = 24; return b[:56] },
			"24 bytes of points, expected 16 for each",
		},
	}
	for name, c := range cases {
		_, _, frame := cwi0Sample()
		cloud := codectest.Cloud(1, 3)
		err := codec.CWI0.NewDecoder().Decode(cloud, c.spoil(frame))
		if !errors.Is(err, codec.ErrMalformed) || !strings.Contains(err.Error(), c.says) || cloud.Len() != 0 {
			t.Errorf("%s: got %d points and %v, want ErrMalformed that says %q", name, cloud.Len(), err, c.says)
		}
	}
}

func TestStampCWI0(t *testing.T) {
	capture := time.UnixMilli(0x0102030405)
	_, _, frame := cwi0Sample()
	before := slices.Clone(frame)
	stamped := codec.StampCWI0([]byte("|"), frame, capture)
	want := append([]byte("|"), frame...)
	copy(want[9:], []byte{5, 4, 3, 2, 1, 0, 0, 0})
	if !bytes.Equal(stamped, want) || !bytes.Equal(frame, before) {
		t.Errorf("got  % x\nwant % x, and the frame as it was", stamped, want)
	}
	if untimed := codec.StampCWI0(nil, frame, time.Time{}); !bytes.Equal(untimed, frame) {
		t.Errorf("got % x, want the frame as it was", untimed)
	}
	empty := codec.StampCWI0(nil, nil, capture)
	cloud := codectest.Cloud(1, 3)
	if err := codec.CWI0.NewDecoder().
		Decode(cloud, empty); err != nil || cloud.Len() != 0 || len(empty) != 32 ||
		empty[8] != 5 {
		t.Errorf("no points are % x, and decoded %d points, %v", empty, cloud.Len(), err)
	}
	if other := codec.StampCWI0(
		nil,
		[]byte("something else that is longer than a header"),
		capture,
	); string(
		other,
	) != "something else that is longer than a header" {
		t.Errorf("got %q", other)
	}
}

func FuzzCWI0Decode(f *testing.F) {
	_, _, frame := cwi0Sample()
	f.Add(frame)
	f.Add(frame[:32])
	f.Add(codec.StampCWI0(nil, nil, time.Unix(1, 0)))
	f.Add([]byte("cpcd"))
	codectest.Seeds(f, codec.CWI0.FourCC())
	f.Fuzz(func(t *testing.T, data []byte) {
		var cloud pointcloud.Cloud
		if codectest.Decode(t, codec.CWI0.NewDecoder(), &cloud, data) != nil {
			return
		}
		if cloud.Len() != len(cloud.Colors) || 16*cloud.Len() > len(data) {
			t.Fatalf("%d positions and %d colours from %d bytes", cloud.Len(), len(cloud.Colors), len(data))
		}
		for _, p := range cloud.Positions {
			if sum := p[0] - p[0] + p[1] - p[1] + p[2] - p[2]; sum != 0 {
				t.Fatalf("a point is at %v", p)
			}
		}
	})
}

func BenchmarkCWI0(b *testing.B) {
	const points = 40_000
	cloud := codectest.Cloud(1, points)
	params := codec.Params{PositionBits: 11, Box: codectest.Box}
	encoder, decoder := codec.CWI0.NewEncoder(), codec.CWI0.NewDecoder()
	frame, err := encoder.Encode(nil, cloud, params)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			frame, _ = encoder.Encode(frame[:0], cloud, params)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/points, "ns/point")
	})
	b.Run("decode", func(b *testing.B) {
		var into pointcloud.Cloud
		b.ReportAllocs()
		for b.Loop() {
			if err := decoder.Decode(&into, frame); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/points, "ns/point")
	})
}

// TestCWI0KeepsCameras expects that a point keeps its camera mask, of the first eight cameras.
func TestCWI0KeepsCameras(t *testing.T) {
	cloud := &pointcloud.Cloud{}
	for i := range 5 {
		cloud.Append([3]float32{float32(i), 0, 0}, [3]uint8{uint8(i), 0, 0})
	}
	params := codec.Params{PositionBits: 11, Box: cloud.Bounds()}
	decoded := &pointcloud.Cloud{Sources: []uint16{7}}
	for _, test := range []struct{ sources, want []uint16 }{{nil, nil},
		{[]uint16{1, 2, 3, 0, 0x180}, []uint16{1, 2, 3, 0, 0x80}}} {
		cloud.Sources = test.sources
		frame, err := codec.CWI0.NewEncoder().Encode(nil, cloud, params)
		if err != nil {
			t.Fatal(err)
		}
		if err := codec.CWI0.NewDecoder().Decode(decoded, frame); err != nil || len(decoded.Sources) != len(test.want) {
			t.Fatalf("%v: cameras are %v, expected %v", err, decoded.Sources, test.want)
		}
		for i, want := range test.want {
			if decoded.Sources[i] != want {
				t.Errorf("point %d was seen by %#x, expected %#x", i, decoded.Sources[i], want)
			}
		}
	}
}
