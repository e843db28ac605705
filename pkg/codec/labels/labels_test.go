package labels_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/codectest"
	_ "github.com/volsfu/volsfu/pkg/codec/draco" // registers itself if it is built in
	"github.com/volsfu/volsfu/pkg/codec/labels"
	_ "github.com/volsfu/volsfu/pkg/codec/zstd"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/test/allocations"
)

func TestLabels(t *testing.T) {
	registered, err := codec.ByName("labels")
	if err != nil {
		t.Fatal(err)
	}
	codectest.Test(t, registered)
	t.Run("of raw", func(t *testing.T) { codectest.TestUnregistered(t, beside(t, codec.Raw)) })
}

// beside returns the codec with the points coded by inner.
func beside(t testing.TB, inner codec.Codec) codec.Codec {
	t.Helper()
	c, err := labels.New(inner)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// marked returns a cloud whose labels and sources follow from the colours of its points.
func marked(points int) *pointcloud.Cloud {
	cloud := codectest.Cloud(1, points)
	cloud.Labels, cloud.Sources = make([]uint16, points), make([]uint16, points)
	for i, c := range cloud.Colors {
		cloud.Labels[i], cloud.Sources[i] = labelOf(c), sourcesOf(c)
	}
	return cloud
}

func labelOf(c [3]uint8) uint16   { return uint16(c[0])<<8 | uint16(c[1]) }
func sourcesOf(c [3]uint8) uint16 { return uint16(c[2]) * 257 }

var params = codec.Params{PositionBits: 11, Speed: 7, Box: codectest.Box}

// TestPointsKeepTheirs expects that each point keeps its label and its cameras, if present, with
// any codec of the points.
func TestPointsKeepTheirs(t *testing.T) {
	var frame []byte
	for _, name := range []string{"draco", "zstd", "raw"} {
		inner, err := codec.ByName(name)
		if err != nil || !inner.Capabilities().Encodes {
			t.Logf("no encoder of %s here", name)
			continue
		}
		c := beside(t, inner)
		if c.Name() != "labels:"+name || c.Capabilities().Ordered {
			t.Errorf("codec is %s with %+v", c.Name(), c.Capabilities())
		}
		encoder, decoder := c.NewEncoder(), c.NewDecoder()
		decoded := marked(5)
		for _, has := range [][2]bool{{true, true}, {true, false}, {false, true}, {false, false}} {
			cloud := marked(1000)
			if !has[0] {
				cloud.Labels = nil
			}
			if !has[1] {
				cloud.Sources = nil
			}
			if frame, err = encoder.Encode(frame[:0], cloud, params); err != nil {
				t.Fatal(err)
			}
			if err := decoder.Decode(decoded, frame); err != nil {
				t.Fatal(err)
			}
			if err := codectest.Same(decoded, codectest.Quantized(cloud, params)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if (len(decoded.Labels) > 0) != has[0] || (len(decoded.Sources) > 0) != has[1] {
				t.Fatalf(
					"%s: %d labels and %d sources of 1,000 points",
					name,
					len(decoded.Labels),
					len(decoded.Sources),
				)
			}
			for i, color := range decoded.Colors {
				if has[0] && decoded.Labels[i] != labelOf(color) || has[1] && decoded.Sources[i] != sourcesOf(color) {
					t.Fatalf("%s: point %d has another's label or cameras", name, i)
				}
			}
		}
	}
}

// TestBodyPartsCostLittle expects that labels of slabs of space take a small fraction of the size
// of the points in these slabs.
func TestBodyPartsCostLittle(t *testing.T) {
	cloud := codectest.Cloud(1, 20_000)
	for _, p := range cloud.Positions {
		cloud.Labels = append(cloud.Labels, uint16(p[1]*4))
	}
	zstd, err := codec.ByName("zstd")
	if err != nil {
		t.Fatal(err)
	}
	with, err := beside(t, zstd).NewEncoder().Encode(nil, cloud, params)
	if err != nil {
		t.Fatal(err)
	}
	without, err := zstd.NewEncoder().Encode(nil, cloud, params)
	if err != nil {
		t.Fatal(err)
	}
	if more := float64(8*(len(with)-len(without))) / float64(cloud.Len()); more <= 0 || more > 1.5 {
		t.Errorf("labels take %.2f bits per point of %d in all, expected at most 1.5", more, 8*len(with)/cloud.Len())
	}
}

func TestRefusals(t *testing.T) {
	registered, err := codec.ByName("labels")
	if err != nil {
		t.Fatal(err)
	}
	for _, inner := range []codec.Codec{registered, codec.CWI0} {
		if _, err := labels.New(inner); !errors.Is(err, codec.ErrUnknown) {
			t.Errorf("labels beside %s: %v", inner.Name(), err)
		}
	}
	uneven := marked(10)
	uneven.Labels = uneven.Labels[:9]
	if dst, err := registered.NewEncoder().
		Encode([]byte("x"), uneven, params); !errors.Is(err, codec.ErrParams) ||
		string(dst) != "x" {
		t.Errorf("9 labels of 10 points: %q, %v", dst, err)
	}
	frame, err := beside(t, codec.Raw).NewEncoder().Encode(nil, marked(10), params)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]struct {
		at   int
		to   byte
		want error
	}{
		"another codec": {0, 'X', codec.ErrUnknown}, "no points": {8, 0, codec.ErrMalformed},
		"many points":    {11, 1, codec.ErrMalformed},
		"something else": {12, 4, codec.ErrMalformed}, "nothing beside": {12, 0, codec.ErrMalformed},
		"less beside": {12, 1, codec.ErrMalformed},
		"long points": {6, 1, codec.ErrMalformed},
	} {
		spoilt := slices.Clone(frame)
		spoilt[change.at] = change.to
		if err := registered.NewDecoder().Decode(new(pointcloud.Cloud), spoilt); !errors.Is(err, change.want) {
			t.Errorf("%s: %v, expected %v", name, err, change.want)
		}
	}
	nested := append([]byte("labl"), frame[4:]...)
	if err := registered.NewDecoder().Decode(new(pointcloud.Cloud), nested); !errors.Is(err, codec.ErrMalformed) {
		t.Errorf("labels of labels: %v", err)
	}
}

func TestAllocations(t *testing.T) {
	c := beside(t, codec.Raw)
	encoder, decoder, cloud := c.NewEncoder(), c.NewDecoder(), marked(2000)
	var frame []byte
	var decoded pointcloud.Cloud
	once := func() {
		var err error
		if frame, err = encoder.Encode(frame[:0], cloud, params); err != nil {
			t.Fatal(err)
		}
		if err := decoder.Decode(&decoded, frame); err != nil {
			t.Fatal(err)
		}
	}
	once()
	if n := allocations.PerCall(20, once); n > 0 {
		t.Errorf("%g allocations, expected none", n)
	}
}

func FuzzDecode(f *testing.F) {
	registered, err := codec.ByName("labels")
	if err != nil {
		f.Fatal(err)
	}
	for _, inner := range []string{"raw", "zstd"} {
		c, err := codec.ByName(inner)
		if err != nil {
			f.Fatal(err)
		}
		frame, err := beside(f, c).NewEncoder().Encode(nil, marked(50), params)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(frame)
	}
	codectest.Seeds(f, registered.FourCC())
	decoder := registered.NewDecoder()
	var cloud pointcloud.Cloud
	f.Fuzz(func(t *testing.T, data []byte) {
		_ = codectest.Decode(t, decoder, &cloud, data)
		for _, n := range []int{len(cloud.Labels), len(cloud.Sources)} {
			if n != 0 && n != cloud.Len() {
				t.Errorf("%d values of %d points", n, cloud.Len())
			}
		}
	})
}
