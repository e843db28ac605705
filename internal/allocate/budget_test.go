package allocate

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// budgetRig steps a budget every 50 ms.
type budgetRig struct {
	t      *testing.T
	budget *Budget
	now    time.Time
}

func newBudgetRig(t *testing.T) *budgetRig {
	t.Helper()
	b, err := NewBudget(DefaultConfig().Budget)
	if err != nil {
		t.Fatal(err)
	}
	return &budgetRig{t: t, budget: b, now: epoch}
}

func (r *budgetRig) step(estimate float64, in BudgetInput) float64 {
	r.now = r.now.Add(50 * time.Millisecond)
	return float64(r.budget.Step(r.now, volumetric.Bitrate(estimate), in))
}

func TestBudgetIsSteadyUnderNoise(t *testing.T) {
	r := newBudgetRig(t)
	noise := rand.New(rand.NewPCG(7, 8))
	least, most, sum := math.Inf(1), 0.0, 0.0
	for n := range 2400 {
		got := r.step(50e6*(1+0.03*(2*noise.Float64()-1)), BudgetInput{})
		if n >= 100 {
			least, most = min(least, got), max(most, got)
		}
		sum += got / 2400
	}
	t.Logf("within ±%.1f %% in two minutes, %.1f %% of the mean estimate", 50*(most/least-1), 100*sum/50e6)
	if most > 1.025*least || sum < 0.92*50e6 {
		t.Errorf("%.2f to %.2f Mbit/s in two minutes, %.2f in the mean", least/1e6, most/1e6, sum/1e6)
	}
}

// The test measures the queue at a link whose mean load leaves the headroom, with frames that vary by ±20 %: see the
// arithmetic of Budget.
func TestHeadroomKeepsQueuesShort(t *testing.T) {
	interval := 1000.0 / 30
	noise := rand.New(rand.NewPCG(9, 10))
	for _, c := range []struct {
		tiles, most float64 // ms
	}{{1, 20}, {4, 6}} {
		var queues []float64
		queue := 0.0
		for range 200_000 {
			frame := 0.0
			for range int(c.tiles) {
				frame += (1 + 0.2*(2*noise.Float64()-1)) / c.tiles
			}
			queue = max(queue+interval*(frame*(1-DefaultConfig().Budget.Headroom)-1), 0)
			queues = append(queues, queue)
		}
		slices.Sort(queues)
		p95 := queues[len(queues)*95/100]
		t.Logf("%v tiles that vary each for itself: p95 %.1f ms", c.tiles, p95)
		if p95 > c.most {
			t.Errorf("%v tiles: p95 %.1f ms, expected %v at most", c.tiles, p95, c.most)
		}
	}
}

// TestBudgetStaysWithinTheEstimate steps a budget with arbitrary inputs, at times that may decrease: the budget never
// exceeds the estimate less audio, headroom and overhead, and the reduction by queues and dropped frames is bounded.
func TestBudgetStaysWithinTheEstimate(t *testing.T) {
	r := newBudgetRig(t)
	cfg := DefaultConfig().Budget
	random := rand.New(rand.NewPCG(3, 4))
	for range 20_000 {
		r.now = r.now.Add(time.Duration(random.IntN(2000)-500) * time.Millisecond)
		estimate := []float64{0, -1e6, 1e12, 1e9 * random.Float64(),
			10e6 * (0.9 + 0.2*random.Float64())}[random.IntN(5)]
		in := BudgetInput{
			Audio:         volumetric.Bitrate(random.IntN(3) * 100_000),
			Overhead:      []float64{0, 0.06, -1, math.NaN(), math.Inf(1)}[random.IntN(5)],
			DroppedFrames: random.IntN(4) * random.IntN(1000),
			QueueDelay:    time.Duration(random.IntN(1000)-200) * time.Millisecond,
		}
		media := max(estimate-float64(in.Audio), 0) * (1 - cfg.Headroom) / (1 + overhead(in.Overhead))
		least := media * (1 - cfg.CutMax) * (1 - cfg.ReserveMax) / (1 + leastRise)
		held := r.budget.held
		got := r.step(estimate, in)
		if got < 0 || got > media+1 || got < min(least, held)-1 {
			t.Fatalf("%.0f bit/s of an estimate of %.0f with %+v, expected %.0f to %.0f", got, estimate, in,
				min(least, held), media)
		}
	}
}
