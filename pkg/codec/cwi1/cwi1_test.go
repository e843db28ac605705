package cwi1

import (
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/codectest"
	"github.com/volsfu/volsfu/pkg/codec/cwi1/cwi1test"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// shell returns the leaves of a spherical shell with colours that change slowly.
func shell(depth int) map[[3]uint32][3]uint8 {
	leaves := make(map[[3]uint32][3]uint8)
	edge := float64(int(1) << depth)
	points := int(3 * edge * edge)
	for i := range points {
		y := 1 - 2*(float64(i)+0.5)/float64(points)
		r, around := math.Sqrt(1-y*y), 2.4*float64(i)
		v := [3]float64{r * math.Cos(around), y, r * math.Sin(around)}
		var leaf [3]uint32
		var rgb [3]uint8
		for axis := range leaf {
			leaf[axis] = uint32((v[axis]*0.45 + 0.5) * edge)
			rgb[axis] = uint8(128 + 60*v[axis])
		}
		leaves[leaf] = rgb
	}
	return leaves
}

// sample returns the octree of a shell.
func sample(depth int) cwi1test.Octree {
	return cwi1test.Octree{Depth: depth, Edge: 1.0 / 256, Low: [3]float64{-0.51, 0.013, -0.7}, Leaves: shell(depth)}
}

// changed returns a copy of data with a change.
func changed(data []byte, change func(data []byte)) []byte {
	copied := slices.Clone(data)
	change(copied)
	return copied
}

func mustDecode(t testing.TB, frame []byte) *pointcloud.Cloud {
	t.Helper()
	cloud := new(pointcloud.Cloud)
	if err := new(decoder).Decode(cloud, frame); err != nil {
		t.Fatal(err)
	}
	return cloud
}

// TestDecode decodes frames of an encoder that was written from the documentation. Positions are exact.
func TestDecode(t *testing.T) {
	for depth := 1; depth <= 8; depth++ {
		frame, want := sample(depth).Encode()
		got := mustDecode(t, frame)
		if !slices.Equal(got.Positions, want.Positions) || len(got.Colors) != got.Len() {
			t.Fatalf("depth %d: %d points with %d colours, want %d at the same positions", depth, got.Len(),
				len(got.Colors), want.Len())
		}
		if announced, err := new(decoder).Announced(frame); err != nil || announced != want.Len() {
			t.Errorf("depth %d: announces %d points, %v, want %d", depth, announced, err, want.Len())
		}
		// A wrong layout of the image mixes colours of distant points.
		off := 0.0
		for i, rgb := range got.Colors {
			for channel, v := range rgb {
				off += math.Abs(float64(v) - float64(want.Colors[i][channel]))
			}
		}
		if off /= float64(3 * got.Len()); off > 6 && depth > 4 {
			t.Errorf("depth %d: colours are off by %.1f, want at most 6", depth, off)
		}
	}
}

func TestPlainAndEmpty(t *testing.T) {
	plain := sample(5)
	plain.Plain = true
	frame, want := plain.Encode()
	if err := codectest.Same(mustDecode(t, frame), want); err != nil {
		t.Error(err)
	}
	// The library writes an empty cloud as a black point at the origin.
	empty := cwi1test.Octree{Depth: 1, Edge: 1.0 / 512, Low: [3]float64{-1.0 / 1024, -1.0 / 1024, -1.0 / 1024},
		Leaves: map[[3]uint32][3]uint8{{}: {}}}
	frame, _ = empty.Encode()
	if cloud := mustDecode(t, frame); cloud.Len() != 0 {
		t.Errorf("%d points, want none", cloud.Len())
	}
	if cloud := mustDecode(t, nil); cloud.Len() != 0 {
		t.Errorf("%d points of no data, want none", cloud.Len())
	}
}

func TestRegistered(t *testing.T) {
	c, err := codec.ByFourCC(codec.FourCC{'c', 'w', 'i', '1'})
	if err != nil || c.Name() != "cwi1" || c.Capabilities().Encodes {
		t.Fatalf("got %v, %v, want cwi1, which only decodes", c, err)
	}
	if _, err := c.NewEncoder().Encode(nil, codectest.Cloud(1, 1), codec.Params{}); !errors.Is(err, codec.ErrParams) {
		t.Errorf("got %v, want ErrParams", err)
	}
}

// TestMalformed tests frames with wrong values, and each prefix of a frame.
func TestMalformed(t *testing.T) {
	frame, _ := sample(4).Encode()
	number := func(at int, v uint64) []byte {
		return changed(frame, func(data []byte) { binary.LittleEndian.PutUint64(data[at:], v) })
	}
	double := func(at int, v float64) []byte { return number(at, math.Float64bits(v)) }
	octet := func(at int, v byte) []byte { return changed(frame, func(data []byte) { data[at] = v }) }
	for name, test := range map[string]struct {
		data []byte
		says string
	}{
		"other name":         {octet(0, '['), "begins with"},
		"difference":         {octet(52, 0), "octree is 00"},
		"points in leaves":   {octet(53, 0), "octree is 01 00"},
		"centroids":          {octet(149, 1), "form 1"},
		"lines":              {octet(152, 2), "form 2"},
		"no points":          {number(55, 0), "0 points"},
		"2^63 points":        {number(55, 1<<63), "9223372036854775808 points"},
		"fewer points":       {number(55, 3), "more than the 3 points"},
		"more points":        {number(55, 4000), "points in"},
		"no edge":            {double(63, 0), "leaves of 0 m"},
		"tiny edge":          {double(63, 1e-9), "expected at most 65536"},
		"edge is no number":  {double(63, math.NaN()), "leaves of NaN m"},
		"box is no number":   {double(80, math.NaN()), "finite"},
		"infinite box":       {double(104, math.Inf(1)), "finite"},
		"box inside out":     {double(104, -10), "finite"},
		"fewer branches":     {number(161, 3), "more than the 3 branches"},
		"more branches":      {number(161, 5000), "branches"},
		"frequencies":        {octet(headerBytes+4, 0), "cumulative frequency 1 is 0"},
		"first frequency":    {octet(headerBytes, 1), "cumulative frequency 0 is 1"},
		"frequencies beyond": {octet(headerBytes+4*256+2, 1), "cumulative frequency 256"},
		"longer":             {append(slices.Clone(frame), 0), "1 bytes behind the points"},
	} {
		cloud := codectest.Cloud(1, 3)
		err := new(decoder).Decode(cloud, test.data)
		if !errors.Is(err, codec.ErrMalformed) || cloud.Len() != 0 || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: got %d points and %v, want ErrMalformed that says %q", name, cloud.Len(), err, test.says)
		}
	}
	d := new(decoder)
	for cut := 1; cut < len(frame); cut++ {
		if err := d.Decode(new(pointcloud.Cloud), frame[:cut]); !errors.Is(err, codec.ErrMalformed) {
			t.Fatalf("%d of %d bytes: got %v, want ErrMalformed", cut, len(frame), err)
		}
	}
}

// TestHostile expects errors for frames that are made to consume memory and time.
func TestHostile(t *testing.T) { codectest.TestHostile(t, cwi1{}) }

// reference returns a frame of CWI's library and the cloud that another decoder made of it. The test is skipped if the
// test data is absent.
func reference(t testing.TB) ([]byte, *pointcloud.Cloud) {
	t.Helper()
	folder := filepath.Join(os.Getenv("VOLSFU_TESTDATA"), "desk-human")
	frame, err := os.ReadFile(filepath.Join(folder, "pcl_frame1.cwicpc"))
	if err != nil {
		t.Skipf("skipped: no frame of CWI's library: %v; set VOLSFU_TESTDATA", err)
	}
	file, err := os.Open(filepath.Join(folder, "pcl_frame1.ply"))
	if err != nil {
		t.Skipf("skipped: no cloud of the frame: %v; set VOLSFU_TESTDATA", err)
	}
	defer func() { _ = file.Close() }()
	cloud := new(pointcloud.Cloud)
	if err := pointcloud.ReadPLY(file, cloud); err != nil {
		t.Fatal(err)
	}
	return frame, cloud
}

// TestReference compares a frame of CWI's library with the cloud of another decoder.
func TestReference(t *testing.T) {
	frame, want := reference(t)
	got := mustDecode(t, frame)
	if !slices.Equal(got.Positions, want.Positions) {
		t.Fatalf("%d points, want %d at the same positions", got.Len(), want.Len())
	}
	// The other decoder interpolates chroma between pixels.
	squares := 0.0
	for i, rgb := range got.Colors {
		for channel, v := range rgb {
			d := float64(v) - float64(want.Colors[i][channel])
			squares += d * d
		}
	}
	if off := math.Sqrt(squares / float64(3*got.Len())); off > 8 {
		t.Errorf("colours are off by %.1f, want at most 8", off)
	} else {
		t.Logf("colours are off by %.1f", off)
	}
}

// FuzzDecode expects for any frame either an error that wraps ErrMalformed and no points, or as many colours as points,
// all of them finite.
func FuzzDecode(f *testing.F) {
	for depth := 1; depth <= 4; depth++ {
		frame, _ := sample(depth).Encode()
		f.Add(frame)
	}
	codectest.Seeds(f, cwi1{}.FourCC())
	f.Fuzz(func(t *testing.T, data []byte) {
		cloud := new(pointcloud.Cloud)
		_ = codectest.Decode(t, new(decoder), cloud, data)
		if len(cloud.Colors) != cloud.Len() {
			t.Fatalf("%d colours of %d points", len(cloud.Colors), cloud.Len())
		}
		for _, p := range cloud.Positions {
			if (p[0]-p[0])+(p[1]-p[1])+(p[2]-p[2]) != 0 {
				t.Fatalf("%v is not finite", p)
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	frame, _ := reference(b)
	d, cloud := new(decoder), new(pointcloud.Cloud)
	b.ReportAllocs()
	for b.Loop() {
		if err := d.Decode(cloud, frame); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(cloud.Len()), "ns/point")
}
