package firstlight

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// captured returns two frames in a box of one metre, 2,000 points each.
func captured() (*original, [2]*pointcloud.Cloud) {
	o := newOriginal(volumetric.BoundingBox{Max: [3]float32{1, 0.5, 0.5}}, 8)
	var clouds [2]*pointcloud.Cloud
	for i := range clouds {
		random := rand.New(rand.NewPCG(uint64(i), 1))
		clouds[i] = &pointcloud.Cloud{}
		for range 2000 {
			clouds[i].Append([3]float32{random.Float32(), random.Float32() / 2, random.Float32() / 2},
				[3]uint8{uint8(random.Uint32()), uint8(random.Uint32()), uint8(random.Uint32())})
		}
		o.add(clouds[i])
	}
	return o, clouds
}

// quantised returns a cloud as a codec decodes it: every coordinate is on the grid.
func quantised(c *pointcloud.Cloud, step float32) *pointcloud.Cloud {
	out := &pointcloud.Cloud{Colors: slices.Clone(c.Colors)}
	for _, p := range c.Positions {
		for axis, v := range p {
			p[axis] = float32(math.Round(float64(v/step))) * step
		}
		out.Positions = append(out.Positions, p)
	}
	return out
}

func TestFidelity(t *testing.T) {
	o, clouds := captured()
	tests := []struct {
		name  string
		shown func() *pointcloud.Cloud
		want  comparison
	}{
		{"as captured", func() *pointcloud.Cloud { return clouds[1] }, comparison{sameColor: 2000, nearestColor: 2000}},
		{"on the grid", func() *pointcloud.Cloud { return quantised(clouds[0], o.step) }, comparison{sameColor: 2000}},
		{"half of one frame, half of another", func() *pointcloud.Cloud {
			a, b := quantised(clouds[0], o.step), quantised(clouds[1], o.step)
			return &pointcloud.Cloud{
				Positions: append(a.Positions[:1200:1200], b.Positions[1200:]...),
				Colors:    append(a.Colors[:1200:1200], b.Colors[1200:]...),
			}
		}, comparison{sameColor: 2000, mixed: 1}},
		{"three points astray", func() *pointcloud.Cloud {
			c := quantised(clouds[0], o.step)
			for i := range 3 {
				c.Positions[100*i] = [3]float32{5, 5, float32(i)}
			}
			return c
		}, comparison{sameColor: 1997, absent: 3, outside: 3}},
		{"a point less", func() *pointcloud.Cloud {
			c := quantised(clouds[0], o.step)
			c.Positions, c.Colors = c.Positions[1:], c.Colors[1:]
			return c
		}, comparison{sameColor: 1999, partial: 1}},
		{"one point twice, one missing", func() *pointcloud.Cloud {
			c := quantised(clouds[0], o.step)
			c.Positions[0], c.Colors[0] = c.Positions[1], c.Colors[1]
			return c
		}, comparison{sameColor: 2000, absent: 1}},
		{"one wrong colour", func() *pointcloud.Cloud {
			c := quantised(clouds[0], o.step)
			c.Colors[7][1] ^= 1
			return c
		}, comparison{sameColor: 1999}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := o.newComparison()
			o.compareFrame(test.shown(), got)
			if got.outside != test.want.outside || got.absent != test.want.absent || got.mixed != test.want.mixed ||
				got.partial != test.want.partial || got.sameColor != test.want.sameColor {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if got.farthest > o.bound || got.nearestColor < test.want.nearestColor {
				t.Errorf("farthest %g of %g, %d colours of the nearest, want at least %d", got.farthest, o.bound,
					got.nearestColor, test.want.nearestColor)
			}
		})
	}
}

// TestBound distinguishes a grid of the required resolution from a grid that is one bit coarser.
func TestBound(t *testing.T) {
	o, clouds := captured()
	if want := float32(1.0 / 255); o.step != want {
		t.Errorf("the step is %g, want %g", o.step, want)
	}
	coarse := o.newComparison()
	o.compareFrame(quantised(clouds[0], 2*o.step), coarse)
	if coarse.outside == 0 {
		t.Error("a grid with twice the step passes")
	}
}

func TestCompareFiles(t *testing.T) {
	o, clouds := captured()
	name := filepath.Join(t.TempDir(), "alice.body.00000001.ply")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(pointcloud.WritePLY(f, quantised(clouds[1], o.step), pointcloud.BinaryLittleEndian),
		f.Close()); err != nil {
		t.Fatal(err)
	}
	c, err := o.compare(context.Background(), []string{name})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range c.lines("") {
		if l.Missed() {
			t.Error(l)
		}
	}
	if _, err := o.compare(context.Background(), []string{name + ".absent"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: got %v", err)
	}
}

// TestReadOriginal reads a recording of two frames that repeat.
func TestReadOriginal(t *testing.T) {
	_, clouds := captured()
	dir := t.TempDir()
	for i, c := range clouds {
		f, err := os.Create(filepath.Join(dir, string(rune('a'+i))+".ply"))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(pointcloud.WritePLY(f, c, pointcloud.BinaryLittleEndian), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	o, err := readOriginal(context.Background(), "ply:"+dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(o.frames) != 2 || o.frames[0].cloud.Len() != 2000 {
		t.Errorf("got %d frames, want the two frames of the recording with 2,000 points", len(o.frames))
	}
}

func TestEvenly(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f", "g"}
	if got := evenly(names, 3); !slices.Equal(got, []string{"a", "c", "e"}) {
		t.Errorf("three of seven are %v", got)
	}
	if got := evenly(names, 9); !slices.Equal(got, names) {
		t.Errorf("nine of seven are %v", got)
	}
}

func TestAfterStart(t *testing.T) {
	names := []string{"saved/a.b/alice.body.00000007.ply", "saved/a.b/alice.body.00000009.ply",
		"saved/a.b/alice.body.00000010.ply", "saved/a.b/bob.body.00000001.ply",
		"saved/a.b/bob.body.00000002.ply"}
	if got, want := afterStart(names, 1), []string{names[1], names[2], names[4]}; !slices.Equal(got, want) {
		t.Errorf("after the first frame of each: %v, want %v", got, want)
	}
	if got := afterStart(names, 5); len(got) > 0 {
		t.Errorf("after five frames of each: %v, want none", got)
	}
}
