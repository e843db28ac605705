package paper001

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/lab/carriage"
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/experiment/cast"
)

// decisions returns decisions that were answered after 20 ms, and decisions that were overtaken by the next decision
// before an answer.
func decisions(answered, overtaken int) (list []carriage.DecisionOutcome) {
	for range answered {
		list = append(list, carriage.DecisionOutcome{At: 3, FirstPacket: 20, Decoded: 30, Shown: 35})
	}
	for range overtaken {
		list = append(list, carriage.DecisionOutcome{At: 3, FirstPacket: -1, Decoded: -1, Shown: -1, Superseded: true})
	}
	return list
}

// TestP95: decisions without an answer count among the decisions of which 95 % must be answered.
func TestP95(t *testing.T) {
	for _, test := range []struct {
		answered, overtaken int
		atLeast             float64
	}{{100, 0, 0}, {95, 5, 0}, {94, 6, math.Inf(1)}, {0, 1, math.Inf(1)}} {
		for name, after := range map[string]float64{"first_packet": 20, "decoded": 30, "shown": 35} {
			i := slices.IndexFunc(answers, func(a answer) bool { return a.name == name })
			if got := answers[i].p95(decisions(test.answered, test.overtaken)); got != max(after, test.atLeast) {
				t.Errorf("%s, %d answered and %d not: %g ms, want %g", name, test.answered, test.overtaken, got,
					max(after, test.atLeast))
			}
		}
	}
	o := experiment.NewOutcome()
	p := defaultDance()
	if p.answered(o, nil, 15, cast.Window{}); len(o.Figures) > 0 {
		t.Errorf("without decisions there is a percentile: %+v", o.Figures)
	}
}

// TestAnswered: without a percentile, the figure is set to a value that misses its bound.
func TestAnswered(t *testing.T) {
	p := dance{System: "volsfu-warm", Delay: 5 * time.Millisecond}
	w := cast.Window{From: time.Unix(100, 0), To: time.Unix(110, 0)}
	for overtaken, want := range map[int]float64{5: 20, 6: 10_000} {
		o := experiment.NewOutcome()
		p.answered(o, decisions(100-overtaken, overtaken), 15, w)
		got, _ := o.Figure("first_packet_p95_15")
		bound, _ := o.Figure("bound_15")
		shown, _ := o.Figure("shown_p95_15")
		if got != want || shown != max(35, want) || math.Abs(bound-1000.0/15-20) > 1e-3 ||
			(len(o.Notes) > 0) != (overtaken > 5) {
			t.Errorf("%d of 100 without an answer: %g ms of %g, shown after %g ms, notes %q; want %g ms", overtaken,
				got, bound, shown, o.Notes, want)
		}
	}
}

// TestOutcomes: decisions in the window count, including overtaken ones. Decisions before the window, and decisions at
// the end after the senders have stopped, do not count.
func TestOutcomes(t *testing.T) {
	list := append(decisions(1, 1), carriage.DecisionOutcome{At: 1.9},
		carriage.DecisionOutcome{At: 12, FirstPacket: -1})
	d := dancer{summary: &carriage.Summary{Got: &carriage.Received{Decisions: list}}}
	if got := d.outcomes(cast.Window{From: time.Unix(100, 0), To: time.Unix(110, 0)}); len(got) != 2 ||
		got[1].FirstPacket != -1 {
		t.Errorf("got %+v, expected the answered and the overtaken decision", got)
	}
}

// TestCounts: missed captures are part of the captures, and are not counted twice.
func TestCounts(t *testing.T) {
	var c counts
	for range 2 {
		c.add(4, &carriage.Published{Captures: 100, CapturesMissed: 10, CapturesDropped: 5, CapturesEncoded: 85},
			&carriage.Received{FramesShown: 330, FramesSkipped: 7})
	}
	if c != (counts{wanted: 800, done: 660, dropped: 2 * (60 + 7)}) {
		t.Errorf("got %+v", c)
	}
}
