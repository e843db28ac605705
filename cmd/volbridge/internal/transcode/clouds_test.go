package transcode

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// capture is the capture time of the clouds of tests.
var capture = time.UnixMilli(1_795_188_600_123).UTC()

func box(low, high float32) volumetric.BoundingBox {
	return volumetric.BoundingBox{Min: [3]float32{low, low, low}, Max: [3]float32{high, high, high}}
}

// TestGridsLineUp checks that positions on the grid of a small cloud are on the grid of a large cloud, too.
func TestGridsLineUp(t *testing.T) {
	for _, test := range []struct {
		bounds volumetric.BoundingBox
		bits   int
	}{
		{box(0, 0), 13}, {box(-4, 3.99), 13}, {box(-4.1, 0), 14}, {box(0, 4.2), 14}, {box(-50, 50), 17},
		{box(-8000, 8000), 24}, {box(-1e6, 1e6), 24},
	} {
		p := grid(test.bounds)
		if err := p.Validate(); err != nil || p.PositionBits != test.bits {
			t.Errorf("%v: %d bits, %v; expected %d", test.bounds, p.PositionBits, err, test.bits)
		}
		if step := p.Step(); step != gridStep {
			t.Errorf("%v: steps of %g m", test.bounds, step)
		}
		if steps := float64(p.Box.Min[0]) / gridStep; steps != math.Round(steps) {
			t.Errorf("%v: the origin is %g steps from the side of the box", test.bounds, -steps)
		}
	}
}

// rawFrame returns the data of a cwi0 frame.
func rawFrame(t *testing.T, positions ...[3]float32) []byte {
	t.Helper()
	cloud := &pointcloud.Cloud{}
	for i, p := range positions {
		cloud.Append(p, [3]uint8{uint8(i), 1, 2})
	}
	if len(positions) == 0 {
		return codec.StampCWI0(nil, nil, capture)
	}
	data, err := codec.CWI0.NewEncoder().Encode(nil, cloud, lossless(cloud.Bounds()))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestThereAndBack(t *testing.T) {
	p, u := NewPacker(codec.Raw), NewUnpacker()
	for name, positions := range map[string][][3]float32{
		"none":      nil,
		"one":       {{1.25, -0.5, 3}},
		"one place": {{1.25, -0.5, 3}, {1.25, -0.5, 3}},
		"far away":  {{30_000, 0, 0}, {30_000, 0, 0}},
		"some":      {{1.25, -0.5, 3}, {0, 0, 0}, {-1.001, 2.002, 0.003}},
	} {
		data, err := p.Pack([]byte("before"), vr2gather.CodecRawPoints, rawFrame(t, positions...))
		if err != nil || string(data[:6]) != "before" {
			t.Fatalf("%s: %v", name, err)
		}
		frame, err := u.Unpack([]byte("before"), codec.Raw.FourCC(), data[6:], capture)
		if err != nil || string(frame[:6]) != "before" {
			t.Fatalf("%s: %v", name, err)
		}
		var header vr2gather.FrameHeader
		points, err := header.Parse(frame[6:])
		if err != nil || header.FourCC != vr2gather.CodecRawPoints || !header.Capture().Equal(capture) ||
			len(points) != 32+16*len(positions) {
			t.Fatalf("%s: %d bytes, %v, header %+v", name, len(points), err, header)
		}
		var cloud pointcloud.Cloud
		if err := codec.CWI0.NewDecoder().Decode(&cloud, points); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i, want := range positions {
			for axis, v := range cloud.Positions[i] {
				if name != "far away" && math.Abs(float64(v-want[axis])) > gridStep/2+1e-6 {
					t.Errorf("%s: point %d is at %v, expected %v", name, i, cloud.Positions[i], want)
				}
			}
			if cloud.Colors[i][0] != uint8(i) {
				t.Errorf("%s: point %d is %v", name, i, cloud.Colors[i])
			}
		}
	}
}

// TestMalformedFrames converts frames that contradict themselves or have an unknown codec.
func TestMalformedFrames(t *testing.T) {
	p := NewPacker(codec.Raw)
	if _, err := p.Pack(nil, vr2gather.CodecRawPoints, []byte("no points")); !errors.Is(err, codec.ErrMalformed) {
		t.Error(err)
	}
	unknown := codec.FourCC{'o', 't', 'h', 'r'}
	if _, err := p.Pack(nil, unknown, []byte("points")); !errors.Is(err, codec.ErrUnknown) {
		t.Error(err)
	}
	u := NewUnpacker()
	if _, err := u.Unpack(nil, unknown, []byte("points"), capture); !errors.Is(err, codec.ErrUnknown) {
		t.Error(err)
	}
	if _, err := u.Unpack(nil, codec.Raw.FourCC(), []byte("points"), capture); !errors.Is(err, codec.ErrMalformed) {
		t.Error(err)
	}
}

// TestAllocations checks that transcoding does not allocate.
func TestAllocations(t *testing.T) {
	p, u := NewPacker(codec.Raw), NewUnpacker()
	raw := rawFrame(t, [3]float32{1, 2, 3}, [3]float32{2, 2, 2}, [3]float32{0, 1, 0})
	var packed, frame []byte
	once := func() {
		var err error
		if packed, err = p.Pack(packed[:0], vr2gather.CodecRawPoints, raw); err != nil {
			t.Fatal(err)
		}
		if frame, err = u.Unpack(frame[:0], codec.Raw.FourCC(), packed, capture); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(100, once); n != 0 {
		t.Errorf("%g allocations, expected none", n)
	}
}
