package codec_test

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/codectest"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

func TestSteps(t *testing.T) {
	can := codec.Capabilities{Steps: []int{0, 5, 7, 9}, SequentialSteps: []int{0, 3}}
	for speed, want := range []int{0, 0, 0, 0, 0, 5, 5, 7, 7, 9, 9} {
		if got := can.Step(codec.Params{Speed: speed}); got != want {
			t.Errorf("speed %d is of step %d, want %d", speed, got, want)
		}
	}
	if got := can.Step(codec.Params{Speed: 9, Sequential: true}); got != 3 {
		t.Errorf("speed 9 in order is of step %d, want 3", got)
	}
	can.SequentialSteps = nil
	if got := can.Step(codec.Params{Speed: 8, Sequential: true}); got != 7 {
		t.Errorf("speed 8 is of step %d where there is no other method, want 7", got)
	}
	if got := (codec.Capabilities{}).Step(codec.Params{Speed: 8}); got != 0 {
		t.Errorf("speed 8 is of step %d where there are none, want 0", got)
	}
}

func TestCheck(t *testing.T) {
	good := codec.Params{PositionBits: 11, Box: codectest.Box}
	plain := &pointcloud.Cloud{Positions: make([][3]float32, 3)}
	for name, c := range map[string]struct {
		change func(*codec.Params)
		cloud  *pointcloud.Cloud
		most   int
		says   string
	}{
		"sound":           {func(*codec.Params) {}, codectest.Cloud(1, 3), 3, ""},
		"without colours": {func(p *codec.Params) { p.NoColors = true }, plain, 3, ""},
		"best quality":    {func(p *codec.Params) { p.ColorQuality = 100 }, codectest.Cloud(1, 3), 3, ""},
		"parameters":      {func(p *codec.Params) { p.PositionBits = 0 }, codectest.Cloud(1, 3), 3, "0 position bits"},
		"colour quality": {func(p *codec.Params) { p.ColorQuality = 101 }, codectest.Cloud(1, 3), 3,
			"colour quality is 101, expected 1 to 100"},
		"colours missing":  {func(*codec.Params) {}, plain, 3, "3 positions and 0 colours"},
		"too many points":  {func(*codec.Params) {}, codectest.Cloud(1, 3), 2, "3 points, expected at most 2"},
		"too many, though": {func(p *codec.Params) { p.NoColors = true }, plain, 2, "3 points, expected at most 2"},
	} {
		params := good
		c.change(&params)
		err := params.Check(c.cloud, c.most)
		if c.says == "" && err != nil ||
			c.says != "" && (!errors.Is(err, codec.ErrParams) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: got %v, want %q", name, err, c.says)
		}
	}
}

func TestGrid(t *testing.T) {
	params := codec.Params{PositionBits: 4, Box: codectest.Box}
	grid := params.Grid()
	for _, c := range []struct {
		position [3]float32
		steps    [3]uint32
	}{
		{codectest.Box.Min, [3]uint32{}},
		// The box is 1.4, 1.88 and 1.2 m long; a step is 1.88 m / 15.
		{codectest.Box.Max, [3]uint32{11, 15, 10}},
		{[3]float32{float32(math.NaN()), float32(math.Inf(1)), -9}, [3]uint32{0, 15, 0}},
	} {
		if got := grid.Steps(c.position); got != c.steps {
			t.Errorf("%v is at %v, want %v", c.position, got, c.steps)
		}
	}
	for axis, v := range grid.Position([3]uint32{1, 2, 0}) {
		if want := codectest.Box.Min[axis] + []float32{1, 2, 0}[axis]*params.Step(); v != want {
			t.Errorf("axis %d: got %g, want %g", axis, v, want)
		}
	}
}

func TestHead(t *testing.T) {
	want := codec.Head{Points: 7, Params: codec.Params{PositionBits: 30, Box: codectest.Box, NoColors: true}}
	data := want.AppendTo([]byte("before"))[len("before"):]
	if got, err := codec.ParseHead(
		append(data, "behind"...),
	); err != nil || got != want ||
		len(data) != codec.HeadBytes {
		t.Errorf("%d bytes come back as %+v, %v, want %+v", len(data), got, err, want)
	}
	data[30] = 1
	if _, err := codec.ParseHead(data); !errors.Is(err, codec.ErrMalformed) {
		t.Errorf("got %v, want ErrMalformed", err)
	}
	if !bytes.Equal(want.AppendTo(nil), append(data[:30:30], 0, 0)) {
		t.Error("heads differ in more than what was changed")
	}
}
