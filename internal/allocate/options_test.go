package allocate

import (
	"slices"
	"testing"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

func TestDescriptions(t *testing.T) {
	// The parts of a cloud as in a known system for multiple descriptions: 60, 25 and 15 %.
	object := Object{Mode: volumetric.ModeDescriptions, Tiles: []Tile{{
		Levels: []Level{{Rate: 6e6, Detail: 0.6}, {Rate: 2.5e6, Detail: 0.25}, {Rate: 1.5e6, Detail: 0.15}},
	}}}
	for _, c := range []struct {
		budget volumetric.Bitrate
		choice Choice
		want   string
	}{
		{Unlimited, Choice{}, "[012:auto]"},
		{9e6, Choice{}, "[01:auto]"},
		{8e6, Choice{}, "[02:auto]"},
		{5e6, Choice{}, "[12:auto]"},
		{2e6, Choice{}, "[2:auto]"},
		{1e6, Choice{}, "[2:budget]"},
		{Unlimited, Descriptions(Qualities(0, 2)), "[02:choice]"},
		{7e6, Descriptions(Qualities(0, 2)), "[0:budget]"},
		{5e6, Descriptions(Qualities(0, 2)), "[2:budget]"},
	} {
		object.Tiles[0].Choice = c.choice
		scene := Scene{Budget: c.budget, Objects: []Object{object}}
		if got := describe(newAllocator(t, nil).Allocate(&scene)); got != c.want {
			t.Errorf("%v, %v: %s, expected %s", c.budget, c.choice, got, c.want)
		}
	}
	many := Object{Mode: volumetric.ModeDescriptions, Tiles: []Tile{{Levels: make([]Level, 8)}}}
	for q := range many.Tiles[0].Levels {
		many.Tiles[0].Levels[q] = Level{Rate: 1e6 + volumetric.Bitrate(q), Detail: 0.125}
	}
	scene := Scene{Budget: 4.5e6, Objects: []Object{many}}
	if got := describe(newAllocator(t, nil).Allocate(&scene)); got != "[0123:auto]" {
		t.Errorf("eight descriptions: %s", got)
	}
}

func TestLevelsThatTellLittle(t *testing.T) {
	a := newAllocator(t, nil)
	for _, c := range []struct {
		name   string
		budget volumetric.Bitrate
		levels []Level
		want   string
		wanted volumetric.Bitrate
	}{
		{"no levels", 1e6, nil, "[off:auto]", 0},
		{"detail from rates", 3e6, []Level{{Rate: 1e6}, {Rate: 2e6}, {Rate: 4e6}}, "[1:auto]", 4e6},
		{"paused and never measured", 3e6, []Level{{Rate: 1e6, Detail: 0.25}, {Detail: 0.5, Paused: true},
			{Detail: 1, Paused: true}}, "[1:auto]", 4e6},
		{"paused, from above", 3e6, []Level{{Detail: 0.25, Paused: true}, {Rate: 4e6, Detail: 1}}, "[0:auto]", 4e6},
		{"an empty tile costs nothing", 0, []Level{{Detail: 0.5}, {Detail: 1}}, "[1:auto]", 0},
		{"a better level that costs less", 3e6, []Level{{Rate: 2e6, Detail: 0.5}, {Rate: 1e6, Detail: 1}},
			"[1:auto]", 1e6},
		{"absurd", 3e6, []Level{{Rate: -5, Detail: -1}, {Rate: 1 << 62, Detail: 9}}, "[1:budget]", mostRate},
	} {
		scene := Scene{Budget: c.budget, Objects: []Object{{Tiles: []Tile{{Levels: c.levels}}}}}
		result := a.Allocate(&scene)
		if got := describe(result); got != c.want || result.Wanted != c.wanted {
			t.Errorf("%s: %s of %v, expected %s of %v", c.name, got, result.Wanted, c.want, c.wanted)
		}
	}
}

func TestPausedLevelsCostMore(t *testing.T) {
	eye := eyeAt(0, 0, 0, 0)
	scene := Scene{Viewpoint: &eye, Budget: 5e6, Objects: []Object{ahead(1, 3, 4e6), ahead(1, 3, 4e6)}}
	a := newAllocator(t, func(c *Config) { c.SwitchCost, c.Reserve = 0.12, 0 })
	keep(&scene, a.Allocate(&scene))
	// The other tile becomes 1.4 times as valuable. A swap needs (1+0.12)/(1-0.12) = 1.27 times, a swap to a paused
	// level (1+0.12)/(1-0.24) = 1.47 times.
	scene.Objects[1].Priority = 1.4
	for i := range scene.Objects[1].Tiles[0].Levels {
		scene.Objects[1].Tiles[0].Levels[i].Paused = true
	}
	if got := describe(a.Allocate(&scene)); got != "[2:auto 0:auto]" {
		t.Errorf("paused: %s", got)
	}
	for i := range scene.Objects[1].Tiles[0].Levels {
		scene.Objects[1].Tiles[0].Levels[i].Paused = false
	}
	if got := describe(a.Allocate(&scene)); got != "[0:auto 2:auto]" {
		t.Errorf("sent already: %s", got)
	}
}

func TestQualitySet(t *testing.T) {
	set := Qualities(3, 0, volumetric.QualityOff, 63, 64)
	if got := slices.Collect(set.Each); !slices.Equal(got, []volumetric.Quality{0, 3, 63}) {
		t.Errorf("each: %v", got)
	}
	for q := range set.Each {
		if q == 3 {
			break
		}
	}
	if !set.Has(63) || set.Has(1) || set.Has(-1) || set.Has(64) || set.Len() != 3 || set.Highest() != 63 {
		t.Errorf("%b", set)
	}
	if off := Qualities(); off.Highest() != volumetric.QualityOff || off.Len() != 0 ||
		(Decision{}).Quality() != volumetric.QualityOff {
		t.Errorf("off: %v", off.Highest())
	}
}
