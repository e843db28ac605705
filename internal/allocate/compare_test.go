package allocate

import (
	"testing"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// quarters is a tiled object 3 m in front of an eye at the origin: front right, front left, back right and back left,
// at 1, 2 and 4 Mbit/s each.
func quarters() Object {
	object := Object{Pose: Pose{Position: [3]float64{0.3, 0, -3}}, Mode: volumetric.ModeAlternatives}
	for _, z := range []float32{0.2, -0.2} {
		for _, x := range []float32{0.2, -0.2} {
			object.Tiles = append(object.Tiles, Tile{Box: cube(x, 0, z, 0.4), Levels: doubling(3, 4e6)})
		}
	}
	return object
}

func TestStrategiesForComparison(t *testing.T) {
	eye := eyeAt(0, 0, 0, 0)
	for _, c := range []struct {
		strategy string
		budget   volumetric.Bitrate
		want     string
	}{
		// The left front faces the eye, which is a little to the left, followed by the right front, the left back and
		// the right back.
		{StrategyUniform, 4e6, "[0:auto 0:auto 0:auto 0:auto]"},
		{StrategyUniform, 6e6, "[1:auto 1:auto 0:auto 0:auto]"},
		{StrategyUniform, 8e6, "[1:auto 1:auto 1:auto 1:auto]"},
		{StrategyUniform, 11e6, "[1:auto 2:auto 1:auto 1:auto]"},
		{StrategyUniform, 2e6, "[0:auto 0:auto off:budget off:budget]"},
		{StrategyGreedy, 6e6, "[1:auto 1:auto 0:auto 0:auto]"},
		{StrategyGreedy, 7e6, "[0:auto 2:auto 0:auto 0:auto]"},
		{StrategyGreedy, 8e6, "[1:auto 2:auto 0:auto 0:auto]"},
		{StrategyGreedy, 13e6, "[2:auto 2:auto 0:auto 2:auto]"},
		{StrategyHybrid, 8e6, "[1:auto 2:auto 0:auto 0:auto]"},
		{StrategyHybrid, 10e6, "[2:auto 2:auto 0:auto 0:auto]"},
		{StrategyHybrid, 12e6, "[2:auto 2:auto 1:auto 1:auto]"},
		{StrategyWeightedHybrid, 7e6, "[1:auto 1:auto 0:auto 1:auto]"},
		{StrategyWeightedHybrid, 8e6, "[1:auto 2:auto 0:auto 0:auto]"},
		{StrategyWeightedHybrid, 10e6, "[2:auto 2:auto 0:auto 0:auto]"},
		{StrategyFront, 16e6, "[0:auto 2:auto 0:auto 0:auto]"},
		{StrategyFront, 5e6, "[0:auto 1:auto 0:auto 0:auto]"},
		{StrategyFront, Unlimited, "[0:auto 2:auto 0:auto 0:auto]"},
	} {
		a := newAllocator(t, func(cfg *Config) { cfg.Strategy = c.strategy })
		scene := Scene{Budget: c.budget, Viewpoint: &eye, Objects: []Object{quarters()}}
		if got := describe(a.Allocate(&scene)); got != c.want {
			t.Errorf("%s, %v: %s, expected %s", c.strategy, c.budget, got, c.want)
		}
	}
}

func TestStrategiesGrantChoices(t *testing.T) {
	for _, strategy := range Strategies() {
		a := newAllocator(t, func(cfg *Config) { cfg.Strategy = strategy })
		scene := Scene{Budget: 7e6, Objects: []Object{quarters()}}
		scene.Objects[0].Tiles[3].Choice = Fixed(2)
		if got := describe(a.Allocate(&scene)); got != "[0:auto 0:auto 0:auto 2:choice]" {
			t.Errorf("%s: %s", strategy, got)
		}
	}
}

func TestFrontTileOfEachObject(t *testing.T) {
	eye := eyeAt(0, 0, 0, 0)
	a := newAllocator(t, func(cfg *Config) { cfg.Strategy = StrategyFront })
	scene := Scene{Budget: Unlimited, Viewpoint: &eye, Objects: []Object{quarters(), quarters()}}
	scene.Objects[1].Pose.Orientation = rotationBy(vector{0, 3, 0})
	want := "[0:auto 2:auto 0:auto 0:auto 0:auto 0:auto 0:auto 2:auto]"
	if got := describe(a.Allocate(&scene)); got != want {
		t.Errorf("%s, expected %s", got, want)
	}
}
