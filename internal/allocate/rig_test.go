package allocate

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Unlimited is a budget that fits everything.
const Unlimited volumetric.Bitrate = math.MaxInt64

// Fixed returns the choice of one quality; volumetric.QualityOff is off.
func Fixed(q volumetric.Quality) Choice { return Choice{Explicit: true, Qualities: Qualities(q)} }

func newAllocator(t testing.TB, change func(*Config)) *Allocator {
	t.Helper()
	cfg := DefaultConfig()
	if change != nil {
		change(&cfg)
	}
	a, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// keep makes the decisions current, and returns the number of changed tiles.
func keep(scene *Scene, result Result) (changes int) {
	for i := range scene.Objects {
		for j := range scene.Objects[i].Tiles {
			tile := &scene.Objects[i].Tiles[j]
			if decided := result.Tiles[i][j].Qualities; decided != tile.Current {
				tile.Current = decided
				changes++
			}
		}
	}
	return changes
}

// overspends reports whether decisions exceed the budget, except by the cheapest option of one tile.
func overspends(a *Allocator, scene *Scene, result Result) bool {
	if result.Rate <= max(scene.Budget, 0) {
		return false
	}
	steps := int32(0)
	for i := range a.items {
		steps += a.items[i].picked
	}
	return steps > 1
}

// doubling returns a ladder of levels, each with twice the points of the one below, up to a rate.
func doubling(levels int, top volumetric.Bitrate) []Level {
	ladder := make([]Level, levels)
	for q := range ladder {
		share := math.Exp2(float64(q + 1 - levels))
		ladder[q] = Level{Rate: volumetric.Bitrate(share * float64(top)), Detail: share}
	}
	return ladder
}

// meeting is a room of people in a circle around the origin, each with the given columns and rows of tiles.
func meeting(people, tiles, levels int) Scene {
	var scene Scene
	for n := range people {
		angle := 2 * math.Pi * float64(n) / float64(people)
		object := Object{
			Mode: volumetric.ModeAlternatives,
			Pose: Pose{
				Position:    [3]float64{3 * math.Sin(angle), 0, -3 * math.Cos(angle)},
				Orientation: rotationBy(vector{0, -angle, 0}),
			},
		}
		for i := range tiles {
			x, y := float32(i%3)*0.25-0.375, float32(i/3)*1.8/float32((tiles+2)/3)
			object.Tiles = append(object.Tiles, Tile{
				Box: volumetric.BoundingBox{
					Min: [3]float32{x, y, -0.2 + 0.05*float32(i%3)},
					Max: [3]float32{x + 0.25, y + 1.8/float32((tiles+2)/3), 0.2 - 0.05*float32(i%2)},
				},
				Levels: doubling(levels, volumetric.Bitrate(2e6+1e5*float64((i*7+n*3)%10))),
			})
		}
		scene.Objects = append(scene.Objects, object)
	}
	return scene
}

// eyeAt is at a position and looks along -z, turned to the left by an angle in degrees.
func eyeAt(x, y, z, left float64) Viewpoint {
	return Viewpoint{
		Position:    [3]float64{x, y, z},
		Orientation: rotationBy(vector{0, left * math.Pi / 180, 0}),
		FOV:         math.Pi / 2, Aspect: 1,
	}
}

// randomScene has the given number of tiles in objects of up to five, with random ladders, at multiples of 10 kbit/s.
func randomScene(r *rand.Rand, tiles, levels int) Scene {
	var scene Scene
	for tiles > 0 {
		object := Object{Mode: volumetric.ModeAlternatives, Priority: math.Exp(2 * r.NormFloat64())}
		if r.IntN(4) == 0 {
			object.Mode = volumetric.ModeDescriptions
		}
		n := min(tiles, 1+r.IntN(5))
		tiles -= n
		for range n {
			count := 1 + r.IntN(levels)
			if object.Mode == volumetric.ModeDescriptions {
				count = min(count, mostSubsets)
			}
			tile := Tile{Levels: make([]Level, count)}
			var rate, detail float64
			for q := range tile.Levels {
				rate += 1 + 100*r.Float64()
				detail += 0.05 + r.Float64()
				tile.Levels[q] = Level{Rate: 10_000 * volumetric.Bitrate(rate), Detail: detail}
			}
			for q := range tile.Levels {
				tile.Levels[q].Detail /= detail
			}
			if object.Mode == volumetric.ModeDescriptions {
				for q := count - 1; q > 0; q-- {
					tile.Levels[q].Rate -= tile.Levels[q-1].Rate
					tile.Levels[q].Detail -= tile.Levels[q-1].Detail
				}
			}
			object.Tiles = append(object.Tiles, tile)
		}
		scene.Objects = append(scene.Objects, object)
	}
	return scene
}
