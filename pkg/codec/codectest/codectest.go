// Package codectest tests the contract of package codec. The tests of every codec call it.
package codectest

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Test runs all tests on a codec.
func Test(t *testing.T, c codec.Codec) {
	t.Run("registered", func(t *testing.T) { testRegistered(t, c) })
	t.Run("capabilities", func(t *testing.T) { testCapabilities(t, c) })
	TestUnregistered(t, c)
}

// TestUnregistered runs all tests on a codec that is not in the registry, for example a wrapper of
// another codec.
func TestUnregistered(t *testing.T, c codec.Codec) {
	t.Run("no points", func(t *testing.T) { testNoPoints(t, c) })
	t.Run("round trip", func(t *testing.T) { testRoundTrip(t, c) })
	t.Run("order", func(t *testing.T) { testOrder(t, c) })
	t.Run("few points", func(t *testing.T) { testFewPoints(t, c) })
	t.Run("coinciding points", func(t *testing.T) { testCoinciding(t, c) })
	t.Run("outside the box", func(t *testing.T) { testOutside(t, c) })
	t.Run("one grid for all tiles", func(t *testing.T) { testTiles(t, c) })
	t.Run("real capture", func(t *testing.T) { testReal(t, c) })
	t.Run("invalid parameters", func(t *testing.T) { testParams(t, c) })
	t.Run("malformed frames", func(t *testing.T) { testMalformed(t, c) })
	t.Run("hostile frames", func(t *testing.T) { TestHostile(t, c) })
}

// Box is the box in which the tests quantize: about the size of a person, with edges of different
// lengths that are not round numbers.
var Box = volumetric.BoundingBox{Min: [3]float32{-0.7, 0.05, -0.61}, Max: [3]float32{0.7, 1.93, 0.59}}

// Cloud returns a cloud of random points in the box with random colours.
func Cloud(seed uint64, points int) *pointcloud.Cloud {
	random := rand.New(rand.NewPCG(seed, 1))
	var cloud pointcloud.Cloud
	for range points {
		var p [3]float32
		var color [3]uint8
		for axis := range p {
			p[axis] = Box.Min[axis] + random.Float32()*(Box.Max[axis]-Box.Min[axis])
			color[axis] = uint8(random.IntN(256))
		}
		cloud.Append(p, color)
	}
	return &cloud
}

// Quantized returns the cloud that a codec produces: computed from the definition of the grid of
// params.
func Quantized(cloud *pointcloud.Cloud, params codec.Params) *pointcloud.Cloud {
	var out pointcloud.Cloud
	steps := float64(uint32(1)<<params.PositionBits - 1)
	for i, p := range cloud.Positions {
		var q [3]float32
		for axis, v := range p {
			low, high := params.Box.Min[axis], params.Box.Max[axis]
			if !(v > low) {
				v = low
			}
			v = min(v, high)
			step := math.Floor((float64(v)-float64(low))*(steps/float64(params.Range())) + 0.5)
			q[axis] = float32(float32(step)*params.Step()) + low
		}
		color := codec.White
		if !params.NoColors {
			color = cloud.Colors[i]
		}
		out.Append(q, color)
	}
	return &out
}

// Same returns an error that describes the difference between two clouds as multisets of points, or
// nil.
func Same(got, want *pointcloud.Cloud) error {
	if got.Len() != want.Len() || len(got.Colors) != len(want.Colors) {
		return fmt.Errorf("%d positions and %d colours, want %d", got.Len(), len(got.Colors), want.Len())
	}
	a, b := sorted(got), sorted(want)
	for i := range a {
		if a[i] != b[i] {
			return fmt.Errorf("point %v, want %v", a[i], b[i])
		}
	}
	return nil
}

// same compares the attributes that the codec preserves: only positions if colours are lossy.
func same(c codec.Codec, got, want *pointcloud.Cloud) error {
	if c.Capabilities().ExactColors || len(got.Colors) != got.Len() {
		return Same(got, want)
	}
	plain := func(cloud *pointcloud.Cloud) *pointcloud.Cloud {
		return &pointcloud.Cloud{Positions: cloud.Positions, Colors: make([][3]uint8, cloud.Len())}
	}
	return Same(plain(got), plain(want))
}

type point struct {
	position [3]float32
	color    [3]uint8
}

func sorted(c *pointcloud.Cloud) []point {
	all := make([]point, c.Len())
	for i, p := range c.Positions {
		all[i] = point{p, c.Colors[i]}
	}
	slices.SortFunc(all, func(a, b point) int {
		if c := slices.Compare(a.position[:], b.position[:]); c != 0 {
			return c
		}
		return slices.Compare(a.color[:], b.color[:])
	})
	return all
}

// speeds returns the speeds that the codec codes in different ways, and the fastest.
func speeds(c codec.Codec, variant codec.Params) []int {
	return append(slices.Clone(c.Capabilities().StepsOf(variant)), 10)
}

// variants returns the parameters that select different coding methods, without bits, speed and
// box.
func variants(c codec.Codec) []codec.Params {
	all := []codec.Params{{}, {NoColors: true}}
	if len(c.Capabilities().SequentialSteps) > 0 {
		all = append(all, codec.Params{Sequential: true}, codec.Params{Sequential: true, NoColors: true})
	}
	return all
}

// with returns the variant's parameters with bits and speed.
func with(variant codec.Params, bits, speed int) codec.Params {
	variant.PositionBits, variant.Speed, variant.Box = bits, speed, Box
	return variant
}

// mustEncode encodes and fails the test on error.
func mustEncode(t *testing.T, e codec.Encoder, cloud *pointcloud.Cloud, params codec.Params) []byte {
	t.Helper()
	data, err := e.Encode(nil, cloud, params)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// mustDecode decodes and fails the test on error.
func mustDecode(t *testing.T, d codec.Decoder, data []byte) *pointcloud.Cloud {
	t.Helper()
	var cloud pointcloud.Cloud
	if err := d.Decode(&cloud, data); err != nil {
		t.Fatal(err)
	}
	return &cloud
}

func testRegistered(t *testing.T, c codec.Codec) {
	if got, err := codec.ByName(c.Name()); err != nil || got != c {
		t.Errorf("by name %q: %v, %v", c.Name(), got, err)
	}
	if got, err := codec.ByFourCC(c.FourCC()); err != nil || got != c {
		t.Errorf("by FourCC %q: %v, %v", c.FourCC(), got, err)
	}
	if !slices.Contains(codec.Names(), c.Name()) {
		t.Errorf("%q is not among %v", c.Name(), codec.Names())
	}
}

func testNoPoints(t *testing.T, c codec.Codec) {
	before := []byte("before")
	after, err := c.NewEncoder().Encode(before, new(pointcloud.Cloud), codec.Params{PositionBits: 11, Box: Box})
	if err != nil || !bytes.Equal(after, before) {
		t.Errorf("encoding no points gives %q, %v, want %q", after, err, before)
	}
	cloud := Cloud(1, 5)
	if err := c.NewDecoder().Decode(cloud, nil); err != nil || cloud.Len() != 0 || len(cloud.Colors) != 0 {
		t.Errorf("decoding no data gives %d points, %v, want none", cloud.Len(), err)
	}
}

func testRoundTrip(t *testing.T, c codec.Codec) {
	encoder, decoder := c.NewEncoder(), c.NewDecoder()
	var decoded pointcloud.Cloud
	var frame []byte
	for i, bits := range []int{11, 1, 2, 5, 7, 8, 9, 10, 12, 15, 16, 17, 20, 24, 30} {
		// The size alternates, so that data of an earlier, larger cloud would be found.
		cloud := Cloud(uint64(i), 200+(i*1571)%1000)
		for _, variant := range variants(c) {
			for _, speed := range speeds(c, variant) {
				params := with(variant, bits, speed)
				var err error
				frame, err = encoder.Encode(append(frame[:0], "prefix"...), cloud, params)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.HasPrefix(frame, []byte("prefix")) {
					t.Fatal("what was in dst is gone")
				}
				if err := decoder.Decode(&decoded, frame[len("prefix"):]); err != nil {
					t.Fatalf("%+v: %v", params, err)
				}
				if err := same(c, &decoded, Quantized(cloud, params)); err != nil {
					t.Fatalf("%+v: %v", params, err)
				}
			}
		}
	}
	// Without colours the cloud needs none.
	params := with(codec.Params{NoColors: true}, 11, 7)
	plain := &pointcloud.Cloud{Positions: Cloud(1, 300).Positions}
	if err := Same(
		mustDecode(t, decoder, mustEncode(t, encoder, plain, params)),
		Quantized(plain, params),
	); err != nil {
		t.Errorf("a cloud without colours: %v", err)
	}
}

func testFewPoints(t *testing.T, c codec.Codec) {
	encoder, decoder := c.NewEncoder(), c.NewDecoder()
	for points := 1; points < 70; points += 1 + points/20 {
		cloud := Cloud(uint64(points), points)
		for _, variant := range variants(c) {
			for _, speed := range speeds(c, variant) {
				params := with(variant, 11, speed)
				decoded := mustDecode(t, decoder, mustEncode(t, encoder, cloud, params))
				if err := same(c, decoded, Quantized(cloud, params)); err != nil {
					t.Fatalf("%d points, %+v: %v", points, params, err)
				}
			}
		}
	}
}

// testCoinciding encodes many points at few positions, and clouds whose points all have the lowest
// or the highest values.
func testCoinciding(t *testing.T, c codec.Codec) {
	encoder, decoder := c.NewEncoder(), c.NewDecoder()
	few, lowest, highest := new(pointcloud.Cloud), new(pointcloud.Cloud), new(pointcloud.Cloud)
	places := Cloud(1, 3)
	for i := range 300 {
		few.Append(places.Positions[i%3], places.Colors[i%3])
		lowest.Append(Box.Min, [3]uint8{})
		highest.Append(Box.Max, [3]uint8{255, 255, 255})
	}
	for name, cloud := range map[string]*pointcloud.Cloud{"few": few, "lowest": lowest, "highest": highest} {
		for _, bits := range []int{1, 8, 20, 30} {
			for _, variant := range variants(c) {
				for _, speed := range speeds(c, variant) {
					params := with(variant, bits, speed)
					decoded := mustDecode(t, decoder, mustEncode(t, encoder, cloud, params))
					if err := same(c, decoded, Quantized(cloud, params)); err != nil {
						t.Fatalf("%s, %+v: %v", name, params, err)
					}
				}
			}
		}
	}
}

// testOutside encodes points beyond every side of the box, and points without a valid position.
func testOutside(t *testing.T, c codec.Codec) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	var cloud pointcloud.Cloud
	for _, v := range []float32{-inf, -1e30, -5, 0, 1, 5, 1e30, inf, nan} {
		for axis := range 3 {
			p := [3]float32{0.1, 1, 0.2}
			p[axis] = v
			cloud.Append(p, [3]uint8{1, 2, 3})
		}
	}
	for _, variant := range variants(c) {
		params := with(variant, 11, 5)
		decoded := mustDecode(t, c.NewDecoder(), mustEncode(t, c.NewEncoder(), &cloud, params))
		if err := same(c, decoded, Quantized(&cloud, params)); err != nil {
			t.Fatalf("%+v: %v", params, err)
		}
		for _, p := range decoded.Positions {
			for axis, v := range p {
				if !(v >= Box.Min[axis]-params.Step()/2 && v <= Box.Max[axis]+params.Step()/2) {
					t.Fatalf("%+v: %v is outside the box", params, p)
				}
			}
		}
	}
}

// testTiles encodes a cloud whole and in tiles. With a shared box the decoded points are equal.
func testTiles(t *testing.T, c codec.Codec) {
	cloud := Cloud(5, 5000)
	tiling, err := pointcloud.NewTiling(9, cloud.Bounds())
	if err != nil {
		t.Fatal(err)
	}
	tiles := make([]pointcloud.Cloud, tiling.Len())
	tiling.Split(cloud, tiles)
	params := codec.Params{PositionBits: 10, Speed: 7, Box: Box}
	whole := mustDecode(t, c.NewDecoder(), mustEncode(t, c.NewEncoder(), cloud, params))
	var together pointcloud.Cloud
	for i := range tiles {
		decoded := mustDecode(t, c.NewDecoder(), mustEncode(t, c.NewEncoder(), &tiles[i], params))
		together.Positions = append(together.Positions, decoded.Positions...)
		together.Colors = append(together.Colors, decoded.Colors...)
	}
	if err := same(c, &together, whole); err != nil {
		t.Error(err)
	}
}
