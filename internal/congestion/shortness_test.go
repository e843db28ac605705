package congestion

import (
	"testing"
	"time"
)

// TestLongQueue: a queue that others fill, or that a path which has lost its capacity has, is not short, whatever it loses.
func TestLongQueue(t *testing.T) {
	g := newGCC(DefaultConfig(), start)
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
		change  func(*gcc)
		spilled bool
	}{
		{"frames that leave evenly", func(*gcc) {}, true},
		{"a probe", func(g *gcc) { g.tried = 2*time.Second - probeShadow/2 }, false},
		{"others", func(g *gcc) { g.rivals.present = true }, false},
		{"little is used", func(g *gcc) { g.limited.limited = true }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := newGCC(DefaultConfig(), start)
			test.change(g)
			g.overflows(time.Second, 50, 100)
			g.overflows(2*time.Second-againTime/2, 50, 100)
			if spilled := g.overflows(2*time.Second, 50, 100); spilled != test.spilled {
				t.Errorf("the rate is too high: %v", spilled)
			}
		})
	}
}
