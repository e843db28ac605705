//go:build cgo && !portable

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
	"github.com/volsfu/volsfu/pkg/codec/draco/yardstick"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/allocations"
)

func TestDraco(t *testing.T) { codectest.Test(t, draco{}) }

// roundBox has corners and edges that six decimals represent exactly, as Draco's own option for
// explicit quantization requires.
var roundBox = volumetric.BoundingBox{Min: [3]float32{-0.75, 0, -0.625}, Max: [3]float32{0.75, 2, 0.625}}

// surface returns a cloud like a capture, dense enough for trees with many levels and for
// coinciding points on coarse grids.
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

// TestAgainstReference compares with Draco at every speed. The frames have the same length, and
// each decoder decodes the other encoder's frames to the same points. Frames of points in their
// order are identical.
func TestAgainstReference(t *testing.T) {
	clouds := map[string]*pointcloud.Cloud{
		"random":  codectest.Cloud(1, 500),
		"surface": surface(2000),
		"one":     surface(1),
		"few":     surface(70),
	}
	for name, cloud := range clouds {
		for _, bits := range []int{1, 11, 16, 19} {
			for _, speed := range []int{0, 1, 3, 5, 7, 10} {
				for _, way := range ways {
					params := way
					params.PositionBits, params.Speed, params.Box = bits, speed, roundBox
					if err := compare(cloud, params); err != nil {
						t.Errorf("%s, %+v: %v", name, params, err)
					}
				}
			}
		}
	}
}

// ways are the kinds of frames.
var ways = []codec.Params{{}, {NoColors: true}, {Sequential: true}, {Sequential: true, NoColors: true}}

// compare compares one frame with Draco's.
func compare(cloud *pointcloud.Cloud, params codec.Params) error {
	want := codectest.Quantized(cloud, params)
	ours, err := newEncoder().Encode(nil, cloud, params)
	if err != nil {
		return err
	}
	theirs, err := yardstick.Encode(codectest.Quantized(cloud, params), params)
	if err != nil {
		return err
	}
	if len(ours) != len(theirs) || !slices.Equal(ours[:leastHeaderBytes], theirs[:leastHeaderBytes]) {
		return fmt.Errorf("our frame has %d bytes and begins with % x, Draco's %d and % x",
			len(ours), ours[:leastHeaderBytes], len(theirs), theirs[:leastHeaderBytes])
	}
	if params.Sequential && !slices.Equal(ours, theirs) {
		return errors.New("our frame is another than Draco's")
	}
	decoded, err := yardstick.Decode(ours)
	if err != nil {
		return fmt.Errorf("draco does not decode our frame: %w", err)
	}
	if err := codectest.Same(decoded, want); err != nil {
		return fmt.Errorf("our frame decoded by Draco: %w", err)
	}
	if err := (decoder{}).Decode(decoded, theirs); err != nil {
		return fmt.Errorf("we do not decode Draco's frame: %w", err)
	}
	if err := codectest.Same(decoded, want); err != nil {
		return fmt.Errorf("draco's frame decoded by us: %w", err)
	}
	return nil
}

func TestAgainstReferenceOnRealCapture(t *testing.T) {
	cloud := codectest.RealCloud(t)
	params := codec.Params{PositionBits: 11, Box: cloud.Bounds()}
	for _, speed := range []int{0, 10} {
		params.Speed = speed
		ours, err := newEncoder().Encode(nil, cloud, params)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := yardstick.Encode(cloud, params)
		if err != nil {
			t.Fatal(err)
		}
		// Draco rounds the box to six decimals, which moves a few points by one step.
		if ratio := float64(len(ours)) / float64(len(theirs)); ratio > 1.001 {
			t.Errorf("speed %d: our frame has %d bytes, Draco's %d", speed, len(ours), len(theirs))
		}
		decoded, err := yardstick.Decode(ours)
		if err != nil {
			t.Fatal(err)
		}
		if err := codectest.Same(decoded, codectest.Quantized(cloud, params)); err != nil {
			t.Errorf("speed %d: %v", speed, err)
		}
	}
}

// TestGridIsExact expects the grid of the parameters in the frame to the last digit, for boxes of
// any size.
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
	// Colours have eight bits, so that the tree has room for positions beyond a grid of six bits.
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
		"short":          {frame[:10], "10 bytes, expected at least 40"},
		"other data":     {spoil(0, 'P', 'N', 'G'), "begins with 50 4e 47"},
		"other version":  {spoil(6, 2), "expected 44 52 41 43 4f 02 03 00"},
		"mesh":           {spoil(7, 1), "point cloud"},
		"another method": {spoil(8, 2), "sequential or kd-tree"},
		"metadata":       {spoil(10, 0x80), "no metadata"},
		"no points":      {spoil(11, u32(0)...), "0 points, expected 1"},
		"too many points": {
			spoil(11, u32(codec.FreePoints+codec.PointsPerByte*uint32(len(frame))+1)...),
			"bytes, expected at most",
		},
		"negative points":     {spoil(11, u32(0xffffffff)...), "4294967295 points"},
		"coders":              {spoil(15, 2), "2 attribute coders"},
		"attributes":          {spoil(16, 3), "3 attributes"},
		"too few attributes":  {spoil(16, 1), "is inconsistent"},
		"first attribute":     {spoil(17, 1), "attribute is 01 09 03, expected 00 09 03"},
		"second attribute":    {spoil(22, 2, 2, 4), "attribute is 02 02 04, expected 02 02 03"},
		"unique id":           {spoil(21, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), "unique id"},
		"level":               {spoil(27, 7), "compression level is 07"},
		"bits per value":      {spoil(28, u32(33)...), "is inconsistent"},
		"points of the tree":  {spoil(32, u32(99)...), "is inconsistent"},
		"length of numbers":   {spoil(36, u32(0xfffffffc)...), "is inconsistent"},
		"odd length":          {spoil(36, u32(5)...), "is inconsistent"},
		"infinite least":      {spoil(end+4, u32(math.Float32bits(float32(math.Inf(1))))...), "finite"},
		"range 0":             {spoil(end+12, u32(0)...), "range is 0 m"},
		"range not a number":  {spoil(end+12, u32(math.Float32bits(float32(math.NaN())))...), "finite"},
		"infinite positions":  {spoil(end+8, u32(0x7f7fffff, 0x7f7fffff)...), "finite positions"},
		"off the grid":        {offGrid, "is inconsistent"},
		"no quantisation":     {spoil(end+16, 0), "0 position bits"},
		"31 bits":             {spoil(end+16, 31), "31 position bits"},
		"fewer bits than has": {spoil(end+16, 9), "is inconsistent"},
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

// TestPointsThatCoincide expects that a frame of a few bytes cannot make a receiver decode millions
// of points, and that the encoder reports the error before a receiver does.
func TestPointsThatCoincide(t *testing.T) {
	params := codec.Params{PositionBits: 11, Speed: 10, Box: roundBox}
	many := func(points int) *pointcloud.Cloud {
		return &pointcloud.Cloud{Positions: make([][3]float32, points), Colors: make([][3]uint8, points)}
	}
	var cloud pointcloud.Cloud
	frame, err := newEncoder().Encode(nil, many(codec.FreePoints), params)
	if err != nil || (decoder{}).Decode(&cloud, frame) != nil || cloud.Len() != codec.FreePoints {
		t.Fatalf("got %d bytes, %v and %d points, want %d", len(frame), err, cloud.Len(), codec.FreePoints)
	}
	before := []byte("before")
	after, err := newEncoder().Encode(before, many(2*codec.FreePoints), params)
	if !errors.Is(err, codec.ErrParams) || !strings.Contains(fmt.Sprint(err), "coincide") ||
		!slices.Equal(after, before) {
		t.Errorf("got %q and %v, want dst unchanged and ErrParams", after, err)
	}
	binary.LittleEndian.PutUint32(frame[magicBytes:], MaxPoints)
	if err := (decoder{}).Decode(
		&cloud,
		frame,
	); !errors.Is(err, codec.ErrMalformed) ||
		cap(cloud.Positions) > 2*codec.FreePoints {
		t.Errorf("got %v and room for %d points, want ErrMalformed and none made", err, cap(cloud.Positions))
	}
}

func TestEncodeTooManyPoints(t *testing.T) {
	if _, err := newEncoder().Encode(nil, &pointcloud.Cloud{Positions: make([][3]float32, MaxPoints+1),
		Colors: make([][3]uint8, MaxPoints+1)},
		codec.Params{PositionBits: 1, Speed: 10, Box: roundBox}); !errors.Is(
		err,
		codec.ErrParams,
	) {
		t.Errorf("encoding more than MaxPoints: got %v, want ErrParams", err)
	}
}

func TestSteadyStateDoesNotAllocate(t *testing.T) {
	cloud := surface(5000)
	for _, way := range ways {
		for _, speed := range []int{0, 5, 7, 10} {
			params := way
			params.PositionBits, params.Speed, params.Box = 11, speed, roundBox
			e := newEncoder()
			frame, order, err := e.EncodeOrdered(nil, nil, cloud, params)
			if err != nil {
				t.Fatal(err)
			}
			var into pointcloud.Cloud
			if err := (decoder{}).Decode(&into, frame); err != nil {
				t.Fatal(err)
			}
			if n := allocations.PerCall(10, func() { frame, _ = e.Encode(frame[:0], cloud, params) }); n != 0 {
				t.Errorf("%+v: %v allocations per encoding, want 0", params, n)
			}
			if n := allocations.PerCall(
				10,
				func() { frame, order, _ = e.EncodeOrdered(frame[:0], order, cloud, params) },
			); n != 0 {
				t.Errorf("%+v: %v allocations per encoding with its order, want 0", params, n)
			}
			if n := allocations.PerCall(10, func() { _ = (decoder{}).Decode(&into, frame) }); n != 0 {
				t.Errorf("%+v: %v allocations per decoding, want 0", params, n)
			}
		}
	}
}

// TestEncodersAreFreed expects that unreferenced encoders release their memory: 200 encoders would
// occupy about 600 MB.
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
