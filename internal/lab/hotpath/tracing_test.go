package hotpath

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/lab"
)

// TestMedianInterval compares with the tables of the sign test: of 9 values the second and the eighth bound the median with 96 %, of 15 the fourth and the twelfth.
func TestMedianInterval(t *testing.T) {
	for n, want := range map[int][2]float64{1: {1, 1}, 5: {1, 5}, 6: {1, 6}, 8: {1, 8}, 9: {2, 8}, 12: {3, 10}, 15: {4, 12}} {
		var values []float64
		for i := range n {
			values = append(values, float64(n-i))
		}
		if low, high := medianInterval(values); low != want[0] || high != want[1] {
			t.Errorf("%d values: %g to %g, want %g to %g", n, low, high, want[0], want[1])
		}
	}
}

func TestTracingLines(t *testing.T) {
	figures := func(cpu, busy float64, lost uint64) *Figures {
		return &Figures{CPU: cpu, MachineBusy: busy, PacketsLost: lost}
	}
	var s traced
	for _, with := range []float64{1.002, 1.004, 1.03} {
		s.add(&s.all, DefaultLoad(), figures(1, 0.4, 0), figures(with, 0.5, 0))
	}
	s.add(&s.asked, DefaultLoad(), figures(1, 0.4, 0), figures(1.05, 0.4, 0))
	for name, want := range map[string]float64{
		"median of the pairs": 0.4, "noise: the pairs' median lies above": 0.2, "noise: and below": 3, "where every receiver asks": 5, "CPU per forwarded packet without": 1,
	} {
		found := false
		for _, l := range s.lines(0.01) {
			if strings.Contains(l.Name, name) && math.Abs(l.Figure-want) < 1e-9 {
				found = true
			}
			if l.Missed() {
				t.Error(l)
			}
		}
		if !found {
			t.Errorf("%s: want %g among %v", name, want, s.lines(0.01))
		}
	}
	s.add(&s.all, DefaultLoad(), figures(1, 0.4, 0), figures(1.05, 0.4, 0))
	if l := s.lines(0.01)[0]; !l.Missed() {
		t.Errorf("%v: want it missed at 1.7 %%", l)
	}
	s.add(&s.all, DefaultLoad(), figures(1, 0.9, 0), figures(1, 0.4, 0))
	s.add(&s.all, DefaultLoad(), figures(1, 0.4, 0), figures(1, 0.4, 1))
	if l := line(t, s.lines(0.01), "pairs left out, since packets were lost or the machine was full"); l.Figure != 2 || !l.Missed() || len(s.all) != 4 {
		t.Errorf("%v with %d pairs: want two left out of six", l, len(s.all))
	}
	if lines := (&traced{}).lines(0.01); !lines[0].Missed() {
		t.Errorf("%v: want a missed target where nothing was measured", lines)
	}
}

// traceBuilt runs the check on a built server, and looks at whether frames are timed where they should be.
func traceBuilt(ctx context.Context, t *testing.T, path string) {
	check := NewTracing(lab.Progress{})
	check.serverBin, check.duration, check.Load, check.Rounds, check.Turns = path, 300*time.Millisecond, smallLoad(), 2, 1
	lines, err := check.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	line(t, lines, "machine busy, at most")
	for _, test := range []struct {
		arguments    []string
		asked, timed bool
	}{{nil, false, false}, {nil, true, true}, {[]string{"--forward-frame-times"}, false, true}} {
		if frames := framesTimed(ctx, t, path, test.asked, test.arguments...); frames > 0 != test.timed {
			t.Errorf("%v, asked by receivers %t: %g frames were timed, want some: %t", test.arguments, test.asked, frames, test.timed)
		}
	}
}

// framesTimed is how many frames a server times under the small load.
func framesTimed(ctx context.Context, t *testing.T, path string, asked bool, arguments ...string) float64 {
	t.Helper()
	server, err := startVolsfu(ctx, path, arguments...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.close() }()
	r, err := newRig(ctx, server, smallLoad())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.close() }()
	if err := r.trace(asked); err != nil {
		t.Fatal(err)
	}
	if err := r.measure(ctx, 300*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	return r.drained.Sum("volsfu_frame_seconds_count", `layer="hold"`)
}
