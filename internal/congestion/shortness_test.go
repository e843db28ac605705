package congestion

import (
	"testing"
	"time"
)

func TestShortness(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	type report struct {
		at            time.Duration
		lost, packets int
		// short is what is expected, and evenSo that the rate is too high.
		short, evenSo bool
	}
	tests := []struct {
		name    string
		share   float64
		reports []report
	}{
		{"a frame overflows the queue", 0.01, []report{{1 * s, 0, 100, false, false}, {1100 * ms, 20, 100, true, false}, {10 * s, 0, 100, true, false}, {16100 * ms, 0, 100, false, false}}},
		{"those under way do, too", 0.01, []report{{1 * s, 20, 100, true, false}, {1150 * ms, 20, 100, true, false}, {1169 * ms, 20, 100, true, false}}},
		{"it overflows though frames leave evenly", 0.01, []report{{1 * s, 20, 100, true, false}, {1170 * ms, 20, 100, true, false}, {1195 * ms, 20, 100, true, true}, {1400 * ms, 20, 100, true, false}}},
		{"now and then", 0.01, []report{{1 * s, 20, 100, true, false}, {3 * s, 20, 100, true, false}, {5 * s, 20, 100, true, false}, {9 * s, 20, 100, true, false}}},
		{"what comes later begins anew", 0.01, []report{{1 * s, 20, 100, true, false}, {16 * s, 0, 100, false, false}, {17 * s, 20, 100, true, false}, {17025 * ms, 20, 100, true, false}}},
		{"few packets in each report", 0.01, []report{{1 * s, 3, 25, false, false}, {1025 * ms, 3, 24, false, false}, {1050 * ms, 0, 1, true, false}}},
		// 100 packets of which 5 % are lost at any rate: 5 ± 2.2 are. 7 would say that a queue has spilled, and 5 × 2.2 are left to chance.
		{"losses of the path", 0.05, []report{{1 * s, 5, 100, false, false}, {2 * s, 17, 100, false, false}, {3 * s, 18, 100, true, false}}},
		{"all is lost at any rate", 1, []report{{1 * s, 100, 100, false, false}}},
		{"nothing was sent", 0.01, []report{{1 * s, 0, 0, false, false}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var short shortness
			for _, r := range test.reports {
				evenSo := short.reported(r.at, r.lost, r.packets, test.share, 20*ms)
				if short.present != r.short || evenSo != r.evenSo {
					t.Errorf("at %v: short %v, the rate too high %v; expected %v, %v", r.at, short.present, evenSo, r.short, r.evenSo)
				}
			}
		})
	}
}

// TestLongQueue: a queue that others fill, or that a path which has lost its capacity has, is not short, whatever it loses.
func TestLongQueue(t *testing.T) {
	g := NewGCC(DefaultConfig(), start)
	for _, step := range []struct {
		queue time.Duration
		short bool
	}{{0, true}, {shortMost, true}, {shortMost + 1, false}, {0, true}} {
		g.queue.delay = step.queue
		if g.overflows(time.Second, 50, 100); g.short.present != step.short {
			t.Errorf("with a queue of %v short is %v", step.queue, g.short.present)
		}
	}
}

// TestSpilled: what overflows a short queue is no reason to lower the rate while it is a probe, others keep the queue full, or little of the estimate is used.
func TestSpilled(t *testing.T) {
	for _, test := range []struct {
		name    string
		change  func(*GCC)
		spilled bool
	}{
		{"frames that leave evenly", func(*GCC) {}, true},
		{"a probe", func(g *GCC) { g.tried = 2*time.Second - probeShadow/2 }, false},
		{"others", func(g *GCC) { g.rivals.present = true }, false},
		{"little is used", func(g *GCC) { g.limited.limited = true }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewGCC(DefaultConfig(), start)
			test.change(g)
			g.overflows(time.Second, 50, 100)
			g.overflows(2*time.Second-againTime/2, 50, 100)
			if spilled := g.overflows(2*time.Second, 50, 100); spilled != test.spilled {
				t.Errorf("the rate is too high: %v", spilled)
			}
		})
	}
}
