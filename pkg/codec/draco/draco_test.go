//go:build cgo

package draco

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/codectest"
	"github.com/volsfu/volsfu/pkg/codec/draco/internal/reference"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

func TestDraco(t *testing.T) { codectest.Test(t, draco{}) }

// roundBox has corners and edges that six decimals hold exactly, as Draco's own option for explicit quantisation needs them.
var roundBox = volumetric.BoundingBox{Min: [3]float32{-0.75, 0, -0.625}, Max: [3]float32{0.75, 2, 0.625}}

// surface is a cloud as captures have it, dense enough for trees with many levels and points that coincide on coarse grids.
func surface(points int) *pointcloud.Cloud {
	var cloud pointcloud.Cloud
	for i := range points {
		y := (float64(i) + 0.5) / float64(points)
		radius, angle := math.Sqrt(y*(1-y)), float64(i)*math.Pi*(3-math.Sqrt(5))
		cloud.Append(
			[3]float32{float32(radius * math.Cos(angle)), float32(2 * y), float32(radius * math.Sin(angle))},
			[3]uint8{uint8(200 * y), uint8(100 + 50*math.Sin(angle)), uint8(i % 3)},
		)
	}
	return &cloud
}

// Our frames are as long as Draco's at every speed and decode to the same points with its decoder; Draco's decode with ours.
func TestAgainstReference(t *testing.T) {
	clouds := map[string]*pointcloud.Cloud{"random": codectest.Cloud(1, 1500), "surface": surface(4000), "one": surface(1), "few": surface(70)}
	for name, cloud := range clouds {
		for _, bits := range []int{1, 5, 8, 11, 16, 17} {
			for _, speed := range []int{0, 4, 5, 6, 7, 8, 9, 10} {
				params := codec.Params{PositionBits: bits, Speed: speed, Box: roundBox}
				what := fmt.Sprintf("%s, %d bits, speed %d", name, bits, speed)
				ours, err := newEncoder().Encode(nil, cloud, params)
				if err != nil {
					t.Fatal(err)
				}
				theirs, err := reference.Encode(codectest.Quantized(cloud, params), params, reference.KdTree)
				if err != nil {
					t.Fatal(err)
				}
				if len(ours) != len(theirs) || !slices.Equal(ours[:headerBytes], theirs[:headerBytes]) {
					t.Errorf("%s: our frame has %d bytes and begins with % x, Draco's %d and % x",
						what, len(ours), ours[:headerBytes], len(theirs), theirs[:headerBytes])
				}
				want := codectest.Quantized(cloud, params)
				decoded, err := reference.Decode(ours)
				if err != nil {
					t.Fatalf("%s: Draco does not decode our frame: %v", what, err)
				}
				if err := codectest.Same(decoded, want); err != nil {
					t.Fatalf("%s: our frame decoded by Draco: %v", what, err)
				}
				if err := (decoder{}).Decode(decoded, theirs); err != nil {
					t.Fatalf("%s: we do not decode Draco's frame: %v", what, err)
				}
				if err := codectest.Same(decoded, want); err != nil {
					t.Fatalf("%s: Draco's frame decoded by us: %v", what, err)
				}
			}
		}
	}
}

func TestAgainstReferenceOnRealCapture(t *testing.T) {
	cloud := codectest.RealCloud(t)
	params := codec.Params{PositionBits: 11, Box: cloud.Bounds()}
	for _, speed := range []int{0, 5, 7, 10} {
		params.Speed = speed
		ours, err := newEncoder().Encode(nil, cloud, params)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := reference.Encode(cloud, params, reference.KdTree)
		if err != nil {
			t.Fatal(err)
		}
		// Draco rounds the box to six decimals, which moves a few points by a step.
		if ratio := float64(len(ours)) / float64(len(theirs)); ratio > 1.001 {
			t.Errorf("speed %d: our frame has %d bytes, Draco's %d", speed, len(ours), len(theirs))
		}
		decoded, err := reference.Decode(ours)
		if err != nil {
			t.Fatal(err)
		}
		if err := codectest.Same(decoded, codectest.Quantized(cloud, params)); err != nil {
			t.Errorf("speed %d: %v", speed, err)
		}
	}
}

// The grid in the frame is the one of the parameters to the last digit, for boxes of any size.
func TestGridIsExact(t *testing.T) {
	for _, edge := range []float32{1e-30, 1.234567e-7, 0.1, 1234.5677, 1e30} {
		box := volumetric.BoundingBox{Min: [3]float32{edge / 3, edge / 7, edge / 11}, Max: [3]float32{edge, edge, edge}}
		params := codec.Params{PositionBits: 12, Speed: 10, Box: box}
		cloud := &pointcloud.Cloud{Positions: [][3]float32{box.Min, box.Max}, Colors: make([][3]uint8, 2)}
		frame, err := newEncoder().Encode(nil, cloud, params)
		if err != nil {
			t.Fatal(err)
		}
		_, _, quantisation, err := parse(frame)
		if err != nil {
			t.Fatal(err)
		}
		if want := (trailer{box.Min, params.Range(), 12}); quantisation != want {
			t.Errorf("frame has %v, want %v", quantisation, want)
		}
	}
}

func TestFrameErrors(t *testing.T) {
	cloud := surface(100)
	params := codec.Params{PositionBits: 11, Speed: 10, Box: roundBox}
	frame, err := newEncoder().Encode(nil, cloud, params)
	if err != nil {
		t.Fatal(err)
	}
	sequential, err := reference.Encode(cloud, params, reference.Sequential)
	if err != nil {
		t.Fatal(err)
	}
	// Colours have eight bits, so that the tree has room for positions beyond a grid of six.
	offGrid, err := newEncoder().Encode(nil, cloud, codec.Params{PositionBits: 7, Speed: 10, Box: roundBox})
	if err != nil {
		t.Fatal(err)
	}
	offGrid[len(offGrid)-1] = 6
	end := len(frame) - trailerBytes
	spoil := func(at int, value ...byte) []byte {
		data := slices.Clone(frame)
		copy(data[at:], value)
		return data
	}
	u32 := func(values ...uint32) (b []byte) {
		for _, v := range values {
			b = binary.LittleEndian.AppendUint32(b, v)
		}
		return b
	}
	cases := map[string]struct {
		data []byte
		says string
	}{
		"short":               {frame[:10], "10 bytes, expected at least 45"},
		"other data":          {spoil(0, 'P', 'N', 'G'), "begins with 50 4e 47"},
		"other version":       {spoil(6, 2), "expected 44 52 41 43 4f 02 03"},
		"mesh":                {spoil(7, 1), "point cloud"},
		"sequential":          {sequential, "kd-tree"},
		"metadata":            {spoil(10, 0x80), "no metadata"},
		"no points":           {spoil(11, u32(0)...), "0 points, expected 1"},
		"too many points":     {spoil(11, u32(MaxPoints+1)...), "4194305 points"},
		"negative points":     {spoil(11, u32(0xffffffff)...), "4294967295 points"},
		"coders":              {spoil(15, 2), "2 attribute coders"},
		"attributes":          {spoil(16, 1), "1 attributes"},
		"first attribute":     {spoil(17, 1), "attribute is 01 09 03, expected 00 09 03"},
		"second attribute":    {spoil(22, 2, 2, 4), "attribute is 02 02 04, expected 02 02 03"},
		"unique id":           {spoil(21, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), "unique id"},
		"level":               {spoil(27, 7), "compression level is 07"},
		"bits per value":      {spoil(28, u32(33)...), "contradicts itself"},
		"points of the tree":  {spoil(32, u32(99)...), "contradicts itself"},
		"length of numbers":   {spoil(36, u32(0xfffffffc)...), "contradicts itself"},
		"odd length":          {spoil(36, u32(5)...), "contradicts itself"},
		"infinite least":      {spoil(end+4, u32(math.Float32bits(float32(math.Inf(1))))...), "finite"},
		"range 0":             {spoil(end+12, u32(0)...), "range is 0 m"},
		"range not a number":  {spoil(end+12, u32(math.Float32bits(float32(math.NaN())))...), "finite"},
		"infinite positions":  {spoil(end+8, u32(0x7f7fffff, 0x7f7fffff)...), "finite positions"},
		"off the grid":        {offGrid, "contradicts itself"},
		"no quantisation":     {spoil(end+16, 0), "0 position bits"},
		"31 bits":             {spoil(end+16, 31), "31 position bits"},
		"fewer bits than has": {spoil(end+16, 9), "contradicts itself"},
		"bytes in between":    {slices.Insert(slices.Clone(frame), end, 1, 2, 3), "3 bytes between"},
	}
	for name, c := range cases {
		cloud := surface(3)
		err := (decoder{}).Decode(cloud, c.data)
		if !errors.Is(err, codec.ErrMalformed) || !strings.Contains(fmt.Sprint(err), c.says) || cloud.Len() != 0 {
			t.Errorf("%s: got %d points and %v, want ErrMalformed that says %q", name, cloud.Len(), err, c.says)
		}
	}
}

func TestEncodeTooManyPoints(t *testing.T) {
	if _, err := newEncoder().Encode(nil, &pointcloud.Cloud{Positions: make([][3]float32, MaxPoints+1), Colors: make([][3]uint8, MaxPoints+1)},
		codec.Params{PositionBits: 1, Speed: 10, Box: roundBox}); !errors.Is(err, codec.ErrParams) {
		t.Errorf("encoding more than MaxPoints: got %v, want ErrParams", err)
	}
}

func TestSteadyStateDoesNotAllocate(t *testing.T) {
	cloud := surface(5000)
	for _, speed := range []int{0, 5, 7, 10} {
		params := codec.Params{PositionBits: 11, Speed: speed, Box: roundBox}
		e := newEncoder()
		frame, err := e.Encode(nil, cloud, params)
		if err != nil {
			t.Fatal(err)
		}
		var into pointcloud.Cloud
		if err := (decoder{}).Decode(&into, frame); err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(10, func() { frame, _ = e.Encode(frame[:0], cloud, params) }); n != 0 {
			t.Errorf("speed %d: %v allocations per encoding, want 0", speed, n)
		}
		if n := testing.AllocsPerRun(10, func() { _ = (decoder{}).Decode(&into, frame) }); n != 0 {
			t.Errorf("speed %d: %v allocations per decoding, want 0", speed, n)
		}
	}
}

// Encoders that nobody holds give their memory back: 200 of these would take some 600 MB.
func TestEncodersAreFreed(t *testing.T) {
	cloud := surface(30_000)
	params := codec.Params{PositionBits: 20, Speed: 10, Box: roundBox}
	for i := range 200 {
		if _, err := newEncoder().Encode(nil, cloud, params); err != nil {
			t.Fatal(err)
		}
		if i%20 == 19 {
			runtime.GC()
		}
	}
	if kilobytes := residentKilobytes(t); kilobytes > 300<<10 {
		t.Errorf("%d kB are resident after 200 encoders were dropped, expected less than 300 MB", kilobytes)
	}
}

func FuzzDecode(f *testing.F) {
	for _, points := range []int{1, 3, 200} {
		for speed := range 11 {
			frame, err := newEncoder().Encode(nil, surface(points), codec.Params{PositionBits: 6 + speed, Speed: speed, Box: roundBox})
			if err != nil {
				f.Fatal(err)
			}
			f.Add(frame)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		// Frames of a few bytes may rightly stand for millions of points in one place, which take a fuzzer's time.
		if h, _, _, err := parse(data); err == nil && h.points > 100_000 {
			t.Skip("too many points")
		}
		var cloud pointcloud.Cloud
		if err := (decoder{}).Decode(&cloud, data); err != nil {
			if !errors.Is(err, codec.ErrMalformed) || cloud.Len() != 0 || len(cloud.Colors) != 0 {
				t.Fatalf("%d points and %v", cloud.Len(), err)
			}
			return
		}
		if len(data) == 0 {
			return
		}
		// What we accept, Draco accepts, and reads the same.
		decoded, err := reference.Decode(data)
		if err != nil {
			t.Fatalf("%d points decoded that Draco refuses: %v", cloud.Len(), err)
		}
		if err := codectest.Same(&cloud, decoded); err != nil {
			t.Fatalf("Draco decodes another cloud: %v", err)
		}
		for _, p := range cloud.Positions {
			if (p[0]-p[0])+(p[1]-p[1])+(p[2]-p[2]) != 0 {
				t.Fatalf("%v is not in space", p)
			}
		}
	})
}

func FuzzEncode(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, uint8(11), uint8(4))
	f.Add(make([]byte, 900), uint8(8), uint8(10))
	f.Add(binary.LittleEndian.AppendUint64(make([]byte, 600), 0x0123456789abcdef), uint8(19), uint8(0))
	e := newEncoder()
	f.Fuzz(func(t *testing.T, data []byte, bits, speed uint8) {
		var cloud pointcloud.Cloud
		for ; len(data) >= 6; data = data[6:] {
			p := [3]float32{}
			for axis := range p {
				p[axis] = roundBox.Min[axis] + float32(data[axis])/255*(roundBox.Max[axis]-roundBox.Min[axis])
			}
			cloud.Append(p, [3]uint8(data[3:6]))
		}
		params := codec.Params{PositionBits: 1 + int(bits)%30, Speed: int(speed) % 11, Box: roundBox}
		frame, err := e.Encode(nil, &cloud, params)
		if err != nil {
			t.Fatal(err)
		}
		var decoded pointcloud.Cloud
		if err := (decoder{}).Decode(&decoded, frame); err != nil {
			t.Fatal(err)
		}
		if err := codectest.Same(&decoded, codectest.Quantized(&cloud, params)); err != nil {
			t.Fatal(err)
		}
	})
}
