package allocate

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/race"
)

// wobble is the relative noise of a scene without real changes: the variation of estimate, viewpoint and measured
// rates.
type wobble struct{ estimate, viewpoint, rates float64 }

// flips returns the number of quality changes in 300 allocations (20 per second) after the first 30, and the value of
// the decisions relative to fresh allocations with the same budgets.
func flips(t *testing.T, c func(*Config), w wobble) (changes int, share float64) {
	t.Helper()
	a, best := newAllocator(t, c), newAllocator(t, c)
	r := rand.New(rand.NewPCG(1, 2))
	within := func(part float64) float64 { return 1 + part*(2*r.Float64()-1) }
	b, err := NewBudget(a.cfg.Budget)
	if err != nil {
		t.Fatal(err)
	}
	scene := meeting(6, 9, 5)
	declared := make(map[*Level]volumetric.Bitrate)
	for i := range scene.Objects {
		for j := range scene.Objects[i].Tiles {
			for q := range scene.Objects[i].Tiles[j].Levels {
				level := &scene.Objects[i].Tiles[j].Levels[q]
				declared[level] = level.Rate
			}
		}
	}
	const rounds = 300
	for n := range rounds + 30 {
		// The objects are 3 m away, and 45° is half of the view.
		eye := eyeAt(3*(within(w.viewpoint)-1), 1.6*within(w.viewpoint), 3*(within(w.viewpoint)-1),
			45*(within(w.viewpoint)-1))
		scene.Viewpoint = &eye
		scene.Budget = b.Step(epoch.Add(time.Duration(n)*50*time.Millisecond),
			volumetric.Bitrate(33e6*within(w.estimate)), BudgetInput{})
		for level, rate := range declared {
			level.Rate = rate
		}
		for i := range scene.Objects {
			for j := range scene.Objects[i].Tiles {
				factor := within(w.rates)
				for q := range scene.Objects[i].Tiles[j].Levels {
					level := &scene.Objects[i].Tiles[j].Levels[q]
					level.Rate = volumetric.Bitrate(float64(level.Rate) * factor)
				}
			}
		}
		result := a.Allocate(&scene)
		if overspends(a, &scene, result) {
			t.Fatalf("%v of a budget of %v", result.Rate, scene.Budget)
		}
		changed := keep(&scene, result)
		if n >= 30 {
			changes += changed
			share += worth(best, scene, result) / rounds
		}
	}
	return changes, share
}

// worth returns the value of the decisions relative to a fresh allocation.
func worth(a *Allocator, scene Scene, decided Result) float64 {
	fresh := scene
	fresh.Objects = make([]Object, len(scene.Objects))
	for i := range fresh.Objects {
		fresh.Objects[i] = scene.Objects[i]
		fresh.Objects[i].Tiles = append([]Tile(nil), scene.Objects[i].Tiles...)
		for j := range fresh.Objects[i].Tiles {
			fresh.Objects[i].Tiles[j].Current = 0
		}
	}
	a.Allocate(&fresh)
	_, most := a.total(a.auto)
	var sum float64
	for i := range a.items {
		it := &a.items[i]
		for _, o := range a.options[it.first : it.first+it.count] {
			if o.set == decided.Tiles[it.object][it.tile].Qualities {
				sum += o.utility
			}
		}
	}
	return sum / most
}

func TestWobbleDoesNotFlipQualities(t *testing.T) {
	race.SkipSequential(t)
	free := func(c *Config) { c.SwitchCost, c.Reserve, c.Budget.ReserveMax = 0, 0, 0 }
	for name, c := range map[string]struct {
		wobble wobble
		most   int
	}{
		"nothing":         {wobble{}, 0},
		"viewpoint ±3 %":  {wobble{viewpoint: 0.03}, 15},
		"rates ±3 %":      {wobble{rates: 0.03}, 15},
		"estimate ±3 %":   {wobble{estimate: 0.03}, 15},
		"everything ±2 %": {wobble{0.02, 0.02, 0.02}, 30},
		"everything ±3 %": {wobble{0.03, 0.03, 0.03}, 150},
	} {
		t.Run(name, func(t *testing.T) {
			with, share := flips(t, nil, c.wobble)
			without, _ := flips(t, free, c.wobble)
			t.Logf("%d changes in 300 allocations of 54 tiles, %d without; %.1f %% of the value of fresh allocations",
				with, without, 100*share)
			if with > c.most || share < 0.97 || c.wobble != (wobble{}) && without < 10*with {
				t.Errorf("%d changes at %.1f %% of the worth, expected %d and a tenth of %d at most", with, 100*share,
					c.most, without)
			}
		})
	}
}

func TestNoisyEstimateDoesNotFlipQualities(t *testing.T) {
	a := newAllocator(t, nil)
	b, err := NewBudget(DefaultConfig().Budget)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 4))
	scene := meeting(1, 4, 8)
	changes := 0
	var sum float64
	for n := range 1200 { // a minute at 20 per second
		estimate := 4e6 * (1 + 0.03*(2*r.Float64()-1))
		scene.Budget = b.Step(epoch.Add(time.Duration(n)*50*time.Millisecond), volumetric.Bitrate(estimate),
			BudgetInput{Overhead: 0.06})
		result := a.Allocate(&scene)
		changed := keep(&scene, result)
		if n >= 40 {
			changes += changed
		}
		sum += float64(result.Rate) / 1200
	}
	t.Logf("%d changes in a minute, %.2f Mbit/s of 3.62", changes, sum/1e6)
	if changes > 8 {
		t.Errorf("%d changes in a minute", changes)
	}
}

func TestAFallOfTheBudgetTakesEffectAtOnce(t *testing.T) {
	a := newAllocator(t, nil)
	scene := meeting(3, 9, 5)
	r := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		scene.Budget = volumetric.Bitrate(60e6 * math.Pow(r.Float64(), 3))
		result := a.Allocate(&scene)
		if overspends(a, &scene, result) {
			t.Fatalf("%v of a budget of %v", result.Rate, scene.Budget)
		}
		keep(&scene, result)
	}
}

// The test compares the largest possible rate on a link with the sent rate when changes have a cost, with the exact
// rate of the link as the estimate.
func TestLinksAreUsed(t *testing.T) {
	const headers = 0.06
	for _, link := range []volumetric.Bitrate{2e6, 10e6, 50e6, 100e6, 300e6} {
		// Four tiles of eight qualities with steps of 1.5, all together 1.2 times the link.
		object := ahead(4, 8, 0)
		for i := range object.Tiles {
			for q := range object.Tiles[i].Levels {
				share := math.Pow(1.5, float64(q-7))
				object.Tiles[i].Levels[q] = Level{Rate: volumetric.Bitrate(share * 0.3 * float64(link)), Detail: share}
			}
		}
		scene := Scene{Budget: volumetric.Bitrate(float64(link) / (1 + headers)), Objects: []Object{object}}
		a := newAllocator(t, nil)
		best := a.Allocate(&scene).Rate
		b, err := NewBudget(a.cfg.Budget)
		if err != nil {
			t.Fatal(err)
		}
		// From a tenth of the link to the whole link, in steps of 2 %.
		var got volumetric.Bitrate
		estimate := 0.1 * float64(link)
		for n := range 300 {
			estimate = min(1.02*estimate, float64(link))
			scene.Budget = b.Step(epoch.Add(time.Duration(n)*50*time.Millisecond), volumetric.Bitrate(estimate),
				BudgetInput{Overhead: headers})
			result := a.Allocate(&scene)
			keep(&scene, result)
			got = result.Rate
		}
		t.Logf("%v: %v of %v, %.1f %%", link, got, best, 100*float64(got)/float64(best))
		if float64(got) < 0.9*float64(best) {
			t.Errorf("%v: %v, expected 90 %% of %v or more", link, got, best)
		}
	}
}
