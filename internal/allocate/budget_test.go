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

// expect compares with what is wanted, to a thousandth.
func (r *budgetRig) expect(what string, got, want float64) {
	r.t.Helper()
	if math.Abs(got-want) > want/1000 {
		r.t.Errorf("%s: %.0f bit/s, expected %.0f", what, got, want)
	}
}

func TestBudgetLeavesWhatOthersTake(t *testing.T) {
	r := newBudgetRig(t)
	r.expect("alone", r.step(10e6, BudgetInput{}), 9.6e6)
	r.expect("audio and headers", r.step(10e6, BudgetInput{Audio: 100_000, Overhead: 0.06}), 9.9e6*0.96/1.06)
	if got := r.step(50e3, BudgetInput{Audio: 100_000}); got != 0 {
		t.Errorf("less than audio takes: %v", got)
	}
	if got := newBudgetRig(t).step(10e6, BudgetInput{Overhead: math.NaN(), DroppedFrames: -5, Audio: -5}); got != 9.6e6 {
		t.Errorf("absurd input: %v", got)
	}
}

func TestBudgetFallsAtOnceAndRisesWhole(t *testing.T) {
	r := newBudgetRig(t)
	for estimate := 12.5e6; estimate < 90e6; estimate *= 1.03 {
		r.expect("ramp", r.step(estimate, BudgetInput{}), 0.96*estimate)
	}
	r.expect("fall", r.step(25e6, BudgetInput{}), 24e6)
	// After a fall a rise counts but for the reserve, and whole once it has lasted.
	r.expect("rise", r.step(50e6, BudgetInput{}), 0.94*48e6)
	var got float64
	for range 20 * 40 {
		got = r.step(50e6, BudgetInput{})
	}
	if got < 0.98*48e6 || got > 48e6 {
		t.Errorf("rise that lasts: %.0f bit/s, expected 48000000 but for steps too small to make", got)
	}
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

func TestBudgetGivesWayToQueues(t *testing.T) {
	r := newBudgetRig(t)
	r.expect("no queue", r.step(10e6, BudgetInput{QueueDelay: 15 * time.Millisecond}), 9.6e6)
	// 50 ms above what is tolerated, to be emptied in half a second.
	r.expect("queue", r.step(10e6, BudgetInput{QueueDelay: 65 * time.Millisecond}), 0.9*9.6e6)
	r.expect("long queue", r.step(10e6, BudgetInput{QueueDelay: time.Second}), 0.8*9.6e6)
	var got float64
	for range 20 * 8 {
		got = r.step(10e6, BudgetInput{})
	}
	if got < 0.98*9.6e6 {
		t.Errorf("after eight seconds: %.0f bit/s", got)
	}
	r.expect("a frame dropped", r.step(10e6, BudgetInput{DroppedFrames: 1}), 0.97*9.6e6)
	if got := r.step(10e6, BudgetInput{DroppedFrames: 100}); got < 0.799*9.6e6 {
		t.Errorf("many frames dropped: %.0f", got)
	}
}

func TestBudgetStandsStillWithTime(t *testing.T) {
	r := newBudgetRig(t)
	r.step(10e6, BudgetInput{DroppedFrames: 2})
	cut := r.budget.cut
	r.now = r.now.Add(-time.Hour)
	r.step(10e6, BudgetInput{})
	if r.budget.cut != cut {
		t.Errorf("a step back in time changes the cut from %v to %v", cut, r.budget.cut)
	}
}

// The queue that mean rates leave behind at a link where frames vary by ±20 %: see the arithmetic beside Budget.
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

// TestBudgetStaysWithinTheEstimate steps a budget with whatever may come, at times that may go back: media are never given more than what audio, headroom
// and overhead leave, and what queues and dropped frames take of that is bounded.
func TestBudgetStaysWithinTheEstimate(t *testing.T) {
	r := newBudgetRig(t)
	cfg := DefaultConfig().Budget
	random := rand.New(rand.NewPCG(3, 4))
	for range 20_000 {
		r.now = r.now.Add(time.Duration(random.IntN(2000)-500) * time.Millisecond)
		estimate := []float64{0, -1e6, 1e12, 1e9 * random.Float64(), 10e6 * (0.9 + 0.2*random.Float64())}[random.IntN(5)]
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
			t.Fatalf("%.0f bit/s of an estimate of %.0f with %+v, expected %.0f to %.0f", got, estimate, in, min(least, held), media)
		}
	}
}
