package congestion

import (
	"testing"
	"time"
)

// TestLongQueue: a queue that cross traffic fills, or that exists after a collapse, is not short, whatever it loses.
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

// TestSpilled: overflow of a short queue does not lower the rate if it is caused by a probe, if cross traffic keeps the
// queue full, or if little of the estimate is used.
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
