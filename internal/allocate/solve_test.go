package allocate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/race"
)

const grain = 10_000 // bit/s: rates of randomScene are multiples of grain

// exact returns the largest value of options of the items within the budget, by dynamic programming over rates; if
// nothing fits, that of one item's cheapest option.
func exact(a *Allocator, items []int32, budget volumetric.Bitrate) float64 {
	best := make([]float64, budget/grain+1)
	next := make([]float64, len(best))
	fits, alone := false, 0.0
	for _, i := range items {
		it := &a.items[i]
		cheapest := a.options[it.first+1]
		fits, alone = fits || cheapest.rate <= float64(budget), max(alone, cheapest.value)
		for spent := range best {
			next[spent] = math.Inf(-1)
			for _, o := range a.options[it.first : it.first+it.count] {
				if cost := int(o.rate) / grain; cost <= spent {
					next[spent] = max(next[spent], best[spent-cost]+o.value)
				}
			}
		}
		best, next = next, best
	}
	if !fits {
		return alone
	}
	return best[len(best)-1]
}

func TestWithinTwoPercentOfOptimum(t *testing.T) {
	race.SkipSequential(t)
	for _, c := range []struct{ problems, tiles, levels int }{
		{300, 1, 8}, {600, 2, 8}, {600, 4, 8}, {600, 6, 3}, {300, 8, 5}, {150, 15, 3}, {40, 40, 4}, {2, 300, 3},
	} {
		t.Run(fmt.Sprintf("%d tiles of up to %d levels", c.tiles, c.levels), func(t *testing.T) {
			a := newAllocator(t, nil)
			worst, sum := 0.0, 0.0
			for seed := range c.problems {
				r := rand.New(rand.NewPCG(uint64(seed), uint64(c.tiles)))
				scene := randomScene(r, c.tiles, c.levels)
				scene.Budget = Unlimited
				wanted := a.Allocate(&scene).Wanted
				scene.Budget = max(wanted*volumetric.Bitrate(1+r.IntN(99))/100, grain)
				result := a.Allocate(&scene)
				if overspends(a, &scene, result) {
					t.Fatalf("seed %d: %v of a budget of %v", seed, result.Rate, scene.Budget)
				}
				optimum := exact(a, a.auto, scene.Budget)
				_, value := a.total(a.auto)
				if value > optimum*(1+1e-9) {
					t.Fatalf("seed %d: %v is more than the optimum, %v", seed, value, optimum)
				}
				if optimum > 0 {
					worst, sum = max(worst, 1-value/optimum), sum+1-value/optimum
				}
			}
			t.Logf("%.3f %% below the optimum at worst, %.4f %% in the mean", 100*worst, 100*sum/float64(c.problems))
			if worst > 0.02 {
				t.Errorf("%.2f %% below the optimum, expected 2 %% at most", 100*worst)
			}
		})
	}
}

func bench(b *testing.B, share volumetric.Bitrate, moving bool) {
	a := newAllocator(b, nil)
	scene := meeting(20, 15, 3)
	eye := eyeAt(0, 1.6, 0, 0)
	scene.Viewpoint = &eye
	scene.Budget = Unlimited
	scene.Budget = a.Allocate(&scene).Wanted * share / 100
	keep(&scene, a.Allocate(&scene))
	b.ReportAllocs()
	n := 0.0
	for b.Loop() {
		if moving {
			n++
			eye = eyeAt(0, 1.6, 0, n)
		}
		keep(&scene, a.Allocate(&scene))
	}
}

// 20 publications of 15 tiles in 3 qualities each.
func BenchmarkAllocateAtRest(b *testing.B)  { bench(b, 25, false) }
func BenchmarkAllocateTurning(b *testing.B) { bench(b, 25, true) }
func BenchmarkAllocateShort(b *testing.B)   { bench(b, 5, true) }
