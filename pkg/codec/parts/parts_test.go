package parts_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/codectest"
	_ "github.com/volsfu/volsfu/pkg/codec/draco" // registers itself if it is built in
	"github.com/volsfu/volsfu/pkg/codec/parts"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/test/allocations"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParts(t *testing.T) {
	registered, err := codec.ByName("parts")
	if err != nil {
		t.Fatal(err)
	}
	codectest.Test(t, registered)
	t.Run("of raw", func(t *testing.T) {
		codectest.TestUnregistered(t, parts.New(parts.Config{Inner: codec.Raw, Parts: 5, Pool: parts.NewPool(3)}))
	})
}

// threads returns codecs of raw parts: with two more helpers, and with the caller alone.
func threads(count int) []codec.Codec {
	return []codec.Codec{
		parts.New(parts.Config{Inner: codec.Raw, Parts: count, Pool: parts.NewPool(2)}),
		parts.New(parts.Config{Inner: codec.Raw, Parts: count, Pool: parts.NewPool(0)}),
	}
}

var params = codec.Params{PositionBits: 11, Speed: 7, Box: codectest.Box}

func encoded(t testing.TB, c codec.Codec, cloud *pointcloud.Cloud, params codec.Params) []byte {
	t.Helper()
	frame, err := c.NewEncoder().Encode(nil, cloud, params)
	if err != nil {
		t.Fatal(err)
	}
	return frame
}

// counts returns the numbers of points of a frame's parts.
func counts(frame []byte) (all []int) {
	for i := range int(binary.LittleEndian.Uint32(frame[4:])) {
		all = append(all, int(binary.LittleEndian.Uint32(frame[8+8*i:])))
	}
	return all
}

// TestSlabs expects parts with about equal numbers of points that are slabs of the longest axis:
// their boxes do not overlap on this axis. The number of helpers does not change the frames.
func TestSlabs(t *testing.T) {
	cloud := codectest.Cloud(1, 20_000)
	both := threads(4)
	frame := encoded(t, both[0], cloud, params)
	if other := encoded(t, both[1], cloud, params); !bytes.Equal(frame, other) {
		t.Error("frames differ with the number of helpers")
	}
	points := counts(frame)
	if len(points) != 4 || slices.Min(points) < 4000 || slices.Max(points) > 6000 {
		t.Fatalf("parts have %v points, want 4 of about 5,000", points)
	}
	var decoded pointcloud.Cloud
	if err := both[0].NewDecoder().Decode(&decoded, frame); err != nil {
		t.Fatal(err)
	}
	before, from := codectest.Box.Min[1]-1, 0
	for i, n := range points {
		view := decoded.View(from, from+n)
		box := view.Bounds()
		if box.Min[1] < before {
			t.Errorf("part %d begins at %g, the one before it ends at %g", i, box.Min[1], before)
		}
		before, from = box.Max[1], from+n
	}
}

func TestSequentialKeepsTheOrder(t *testing.T) {
	cloud := codectest.Cloud(1, 10_000)
	params := params
	params.Sequential = true
	c := threads(7)[0]
	frame := encoded(t, c, cloud, params)
	var decoded pointcloud.Cloud
	if err := c.NewDecoder().Decode(&decoded, frame); err != nil {
		t.Fatal(err)
	}
	want := codectest.Quantized(cloud, params)
	if len(counts(frame)) != 7 || !slices.Equal(decoded.Positions, want.Positions) ||
		!slices.Equal(decoded.Colors, want.Colors) {
		t.Errorf("%d parts in another order than the cloud", len(counts(frame)))
	}
	// The cloud's memory is not written to afterwards.
	before := slices.Clone(cloud.Positions)
	encoder := c.NewEncoder()
	for _, sequential := range []bool{true, false, true} {
		params.Sequential = sequential
		if _, err := encoder.Encode(nil, cloud, params); err != nil || !slices.Equal(cloud.Positions, before) {
			t.Fatalf("encoding changed the cloud (%v)", err)
		}
	}
}

// TestFewerParts expects fewer threads for few points, and empty slabs for coinciding coordinates.
func TestFewerParts(t *testing.T) {
	c := threads(8)[0]
	if got := counts(encoded(t, c, codectest.Cloud(1, 2500), params)); len(got) != 2 {
		t.Errorf("2,500 points are in %d parts, want 2", len(got))
	}
	flat := new(pointcloud.Cloud)
	for range 10_000 {
		flat.Append([3]float32{0.1, 0.5, 0.2}, [3]uint8{1, 2, 3})
	}
	if got := counts(encoded(t, c, flat, params)); !slices.Equal(got, []int{10_000}) {
		t.Errorf("points in one place are in parts of %v, want one", got)
	}
}

func TestErrors(t *testing.T) {
	cloud := codectest.Cloud(1, 4000)
	c := threads(4)[0]
	frame := encoded(t, c, cloud, params)
	rawBytes := len(frame) - 40
	u32 := binary.LittleEndian.AppendUint32
	spoil := func(at int, value ...byte) []byte {
		data := slices.Clone(frame)
		copy(data[at:], value)
		return data
	}
	cases := map[string]struct {
		data []byte
		is   error
		says string
	}{
		"short":          {frame[:15], codec.ErrMalformed, "15 bytes, expected at least 16"},
		"unknown codec":  {spoil(0, []byte("none")...), codec.ErrUnknown, `FourCC "none"`},
		"parts of parts": {spoil(0, []byte("part")...), codec.ErrMalformed, "parts of parts"},
		"a part of more points": {
			spoil(8, frame[8]-1),
			codec.ErrMalformed,
			"part 0 of 4: malformed frame: the part announces",
		},
		"no parts":       {spoil(4, 0), codec.ErrMalformed, "0 parts"},
		"too many parts": {spoil(4, 65), codec.ErrMalformed, "65 parts"},
		"parts without sizes": {
			append([]byte("raw1"), u32(nil, 3)[0], 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0),
			codec.ErrMalformed,
			"3 parts in 16 bytes",
		},
		"part without points": {spoil(8, 0, 0), codec.ErrMalformed, "part 0 has 0 points"},
		"part without bytes":  {spoil(12, 0, 0), codec.ErrMalformed, "in 0 bytes"},
		"a byte more": {
			append(slices.Clone(frame), 0),
			codec.ErrMalformed,
			fmt.Sprintf("%d bytes, the head says %d", len(frame)+1, len(frame)),
		},
		"sizes that overflow":   {spoil(12, 0xff, 0xff, 0xff, 0xff), codec.ErrMalformed, "the head says"},
		"points out of nowhere": {spoil(8, 0xff, 0xff, 0xff, 0x7f), codec.ErrMalformed, "expected at most"},
		"another number":        {spoil(16, frame[16]+1), codec.ErrMalformed, "part 1 of 4: malformed frame: "},
		"a part is no frame":    {spoil(len(frame)-rawBytes, 9, 9), codec.ErrMalformed, "part 0 of 4"},
	}
	for name, test := range cases {
		cloud := codectest.Cloud(1, 3)
		err := c.NewDecoder().Decode(cloud, test.data)
		if !errors.Is(err, test.is) || !strings.Contains(fmt.Sprint(err), test.says) || cloud.Len() != 0 ||
			len(cloud.Colors) != 0 {
			t.Errorf("%s: got %d points and %v, want %v that says %q", name, cloud.Len(), err, test.is, test.says)
		}
	}
	// After these errors a decoder still decodes.
	decoder := c.NewDecoder()
	var decoded pointcloud.Cloud
	if err := decoder.Decode(&decoded, cases["a part is no frame"].data); err == nil {
		t.Error("a spoilt part decoded")
	}
	if err := decoder.Decode(
		&decoded,
		frame,
	); err != nil ||
		codectest.Same(&decoded, codectest.Quantized(cloud, params)) != nil {
		t.Errorf("after a spoilt frame: %v", err)
	}
}

// elsewhere is raw, but decodes to its own memory, as codecs may.
type elsewhere struct{ codec.Codec }

func (e elsewhere) Announced(data []byte) (int, error) {
	return e.Codec.NewDecoder().(codec.Announcer).Announced(data)
}

func (elsewhere) FourCC() codec.FourCC        { return codec.FourCC([]byte("else")) }
func (elsewhere) Name() string                { return "elsewhere" }
func (e elsewhere) NewDecoder() codec.Decoder { return e }
func (e elsewhere) Decode(cloud *pointcloud.Cloud, data []byte) error {
	*cloud = pointcloud.Cloud{}
	return e.Codec.NewDecoder().Decode(cloud, data)
}

func init() { codec.Register(elsewhere{codec.Raw}) }

func TestDecodersWithMemoryOfTheirOwn(t *testing.T) {
	cloud := codectest.Cloud(3, 5000)
	c := parts.New(parts.Config{Inner: elsewhere{codec.Raw}, Parts: 3})
	var decoded pointcloud.Cloud
	if err := c.NewDecoder().Decode(&decoded, encoded(t, c, cloud, params)); err != nil {
		t.Fatal(err)
	}
	if err := codectest.Same(&decoded, codectest.Quantized(cloud, params)); err != nil {
		t.Error(err)
	}
}

func TestNewPanics(t *testing.T) {
	for _, c := range []parts.Config{{Parts: -1}, {Parts: parts.MaxParts + 1}, {Inner: parts.New(parts.Config{})}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%+v: got a codec, want a panic", c)
				}
			}()
			parts.New(c)
		}()
	}
}

func TestSteadyStateDoesNotAllocate(t *testing.T) {
	cloud := codectest.Cloud(1, 8000)
	for _, c := range threads(4) {
		encoder, decoder := c.NewEncoder(), c.NewDecoder()
		frame, err := encoder.Encode(nil, cloud, params)
		if err != nil {
			t.Fatal(err)
		}
		var into pointcloud.Cloud
		if err := decoder.Decode(&into, frame); err != nil {
			t.Fatal(err)
		}
		if n := allocations.PerCall(20, func() { frame, _ = encoder.Encode(frame[:0], cloud, params) }); n != 0 {
			t.Errorf("%s: %v allocations per encoding, want 0", c.Name(), n)
		}
		if n := allocations.PerCall(20, func() { _ = decoder.Decode(&into, frame) }); n != 0 {
			t.Errorf("%s: %v allocations per decoding, want 0", c.Name(), n)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, points := range []int{1, 10, 3000} {
		f.Add(encoded(f, threads(3)[0], codectest.Cloud(1, points), params))
	}
	if draco, err := codec.ByName("draco"); err == nil && draco.Capabilities().Encodes {
		f.Add(encoded(f, parts.New(parts.Config{Inner: draco, Parts: 2}), codectest.Cloud(1, 2000), params))
	}
	codectest.Seeds(f, codec.FourCC([]byte("part")))
	f.Fuzz(func(t *testing.T, data []byte) {
		// Without helpers all work is done, and measured, on this thread.
		decoder := parts.New(parts.Config{Pool: parts.NewPool(0)}).NewDecoder()
		var cloud pointcloud.Cloud
		if codectest.Decode(t, decoder, &cloud, data) != nil {
			return
		}
		if cloud.Len() != len(cloud.Colors) || cloud.Len() > 1<<16+64*len(data) {
			t.Fatalf("%d positions and %d colours from %d bytes", cloud.Len(), len(cloud.Colors), len(data))
		}
	})
}
