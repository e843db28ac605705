package paths

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/netfn/wire"
)

// TestPaperEndsAfterOneWindow shows what Algorithm 1 as printed does on the paths of Table I with the paper's
// parameters: after one window, mostly with packet 101 and 3 to 50 ms after the start, a single path is left, in some
// runs the varying path 1. No copy is lost, since the algorithm waits for all copies.
func TestPaperEndsAfterOneWindow(t *testing.T) {
	ranges := [][2]float64{{20, 70}, {30, 35}, {100, 110}, {100, 110}, {30, 35}}
	ends, lengths := map[Set]int{}, map[int]int{}
	const runs = 60
	for seed := range uint64(runs) {
		random := rand.New(rand.NewPCG(seed, 0))
		// AR(1) delays with a correlation time of 0.1 or 1 s at 2,000 to 30,000 packets/s.
		tau := []float64{0.1, 1}[seed%2]
		rate := []float64{2000, 10_000, 30_000}[seed%3]
		r := math.Exp(-1 / (rate * tau))
		var state [wire.MaxPaths]float64
		for i := range state {
			state[i] = random.NormFloat64()
		}
		paper := NewPaper(1<<len(ranges)-1, 100, 5*ms)
		packets, set := 0, Set(1<<len(ranges)-1)
		for set.Len() > 1 {
			if packets++; packets > 200_000 {
				t.Fatalf("seed %d: the set is still %v after %d packets", seed, set, packets)
			}
			var arrived [wire.MaxPaths]time.Duration
			for i, limits := range ranges {
				state[i] = r*state[i] + math.Sqrt(1-r*r)*random.NormFloat64()
				share := 0.5 * (1 + math.Erf(state[i]/math.Sqrt2))
				delay := limits[0] + share*(limits[1]-limits[0])
				arrived[i] = time.Duration(float64(packets) / rate * float64(time.Second))
				arrived[i] += time.Duration(delay * float64(ms))
			}
			set = paper.Packet(arrived)
		}
		ends[set]++
		lengths[packets]++
		if packets > 200 {
			t.Errorf("seed %d: path %v alone after %d packets, want after 101 to 200", seed, set, packets)
		}
	}
	t.Logf("%d runs by the path that is left: %v, and by packets: %v", runs, ends, lengths)
	if lengths[101] < runs*9/10 {
		t.Errorf("%d of %d runs end with packet 101, want 90 %%", lengths[101], runs)
	}
	if ends[of(0)] < runs/5 {
		t.Errorf("the varying path 1 is left in %d of %d runs, want 20 %%", ends[of(0)], runs)
	}
}

// TestPaperAsPrinted follows the listing line by line with a window of 3 packets.
func TestPaperAsPrinted(t *testing.T) {
	for _, test := range []struct {
		name string
		gaps [][3]time.Duration // delay of each path above the fastest one, in ms, by packet
		want []Set
	}{
		{"a path without rewards in the window is removed",
			[][3]time.Duration{{0, 9, 9}, {0, 9, 9}, {9, 9, 0}, {4, 9, 0}}, []Set{7, 7, 7, 5}},
		{"a path in time for the whole window ends the algorithm",
			[][3]time.Duration{{0, 9, 9}, {0, 0, 4}, {0, 9, 0}, {0, 4, 0}, {9, 0, 9}}, []Set{7, 7, 7, 1, 1}},
		{"the tolerance itself is late",
			[][3]time.Duration{{0, 5, 4}, {4, 5, 0}, {0, 5, 4}, {0, 5, 9}}, []Set{7, 7, 7, 1}},
		{"the first of two paths that were always in time stays",
			[][3]time.Duration{{0, 0, 9}, {0, 0, 9}, {0, 0, 9}, {0, 0, 0}}, []Set{7, 7, 7, 1}},
	} {
		paper := NewPaper(7, 3, 5*ms)
		for n, gaps := range test.gaps {
			var arrived [wire.MaxPaths]time.Duration
			for i, gap := range gaps {
				arrived[i] = time.Second + gap*ms
			}
			if got := paper.Packet(arrived); got != test.want[n] {
				t.Errorf("%s: after packet %d the set is %v, want %v", test.name, n+1, got, test.want[n])
			}
		}
	}
}
