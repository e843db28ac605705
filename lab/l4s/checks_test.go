package l4s

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/internal/netem/router"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/control"
	"github.com/volsfu/volsfu/lab/rival"
	"github.com/volsfu/volsfu/test/claim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func figure(v float64) *float64 { return &v }

// good returns a result that meets every target of a case.
func good(text string, o control.Options) *control.Result {
	r := &control.Result{
		Case: text, Utilisation: 0.97, ShareOfCapacity: 0.9, EstimateShare: 0.45,
		Queue:      control.QueueFigures{P50: 0.5, P95: 0.9, P99: 1, Max: 4},
		LowLatency: &control.ClassFigures{P99: 1.1}, Classic: &control.ClassFigures{P99: 15},
		AudioQueue: figure(2.9), Latency: control.LatencyFigures{P50: 25, P95: 30, P99: 40},
		FramesSent: 10_000, SecondsToTarget: figure(0.9), ShareOfFair: figure(0.95), JainIndex: figure(0.99),
		Others: &control.OtherFigures{ShareOfFair: figure(1)},
		Cliff:  &control.CliffFigures{LongestQueue: 90, ShortAfter: 0.2}, FallbackSeconds: figure(0.1),
		Room: &control.RoomFigures{Hops: []control.HopFigures{{Before: 90, WhileMarks: 45}}, LargestChange: 0.01},
	}
	r.Codepoints = []control.CodepointFigures{{Seconds: 0, Codepoint: "ECT(1)"}}
	if o.CubicECN {
		r.Codepoints[0].Seconds = 11.25
		r.Codepoints = append(r.Codepoints, control.CodepointFigures{Seconds: 22.5, Codepoint: "ECT(0)"})
		r.FirstMarkSeconds = figure(21.5)
	}
	return r
}

// inTime returns a good result of a run end to end, with an emulated network in time.
func inTime(text string, o control.Options) *control.Result {
	r := good(text, o)
	r.Emulation = &control.EmulationFigures{Valid: true, LateP95: 0.3}
	return r
}

// newBench returns a bench with two traces and a function that runs cases.
func newBench(t *testing.T, run func(text string, o control.Options) (*control.Result, error)) *bench {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"one.csv", "two.csv"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("0,10\n1,10\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return newVirtual(dir, func(_ context.Context, text string, o control.Options) (*control.Result, error) {
		return run(text, o)
	})
}

// newHosts returns a bench end to end with a function that runs cases.
func newHosts(t *testing.T, run func(text string, o control.Options) (*control.Result, error)) *bench {
	t.Helper()
	b := newBench(t, run)
	return newLive(b.traces, b.simulate, lab.Progress{})
}

// missed runs all checks on results that spoil changes, and returns the numbers of the checks with missed targets.
func missed(t *testing.T, spoil func(text string, o control.Options, r *control.Result)) (numbers []int) {
	t.Helper()
	b := newBench(t, func(text string, o control.Options) (*control.Result, error) {
		r := good(text, o)
		spoil(text, o, r)
		return r, nil
	})
	for i, c := range checks(b, nil) {
		lines, err := c.Run(t.Context())
		if err != nil || len(lines) < 2 || c.Name() == "" {
			t.Fatalf("check %d, %q: %d lines, %v", i+1, c.Name(), len(lines), err)
		}
		if last := lines[len(lines)-1]; last.Name != "end to end" || last.Skipped == "" {
			t.Errorf("check %d: last line %+v, expected that the end-to-end part is skipped", i+1, last)
		}
		if slices.ContainsFunc(lines, func(l claim.Line) bool { return l.Missed() }) {
			numbers = append(numbers, i+1)
		}
	}
	return numbers
}

// TestTargets: a figure worse than its claim fails the check of the claim and no other check.
func TestTargets(t *testing.T) {
	type options = control.Options
	type result = control.Result
	paper := func(o options) bool { return o.Queue == netem.QueuePaper000 }
	for name, test := range map[string]struct {
		spoil  func(text string, o options, r *result)
		missed []int
	}{
		"nothing": {func(string, options, *result) {}, nil},
		"one seed has a long queue": {func(text string, o options, r *result) {
			if text == "steady:10" && o.Seed == 4 {
				r.LowLatency.P99 = 2.26
			}
		}, []int{1}},
		"one seed loses a frame": {func(text string, o options, r *result) {
			if text == "cliff" && o.Seed == 3 {
				r.FramesUndecodable = 1
			}
		}, []int{9}},
		"one seed starves, another is greedy": {func(text string, o options, r *result) {
			switch {
			case text == "prague:3" && o.Queue == netem.QueueDualPI2 && o.RivalRTT == 0 && o.Seed == 2:
				r.ShareOfFair = figure(0.8)
			case text == "prague:1" && o.RTT == 5*time.Millisecond && o.Seed == 5:
				r.ShareOfFair = figure(1.4)
			}
		}, []int{6, 7}},
		"one seed differs from gcc": {func(text string, o options, r *result) {
			if text == "bleach:drop" && o.Estimator.Controller == congestion.ControllerGCC && o.Seed == 2 {
				r.Utilisation = 0.9
			}
		}, []int{11}},
		"one link is used too little": {func(text string, _ options, r *result) {
			if text == "steady:300" {
				r.Utilisation = 0.94
			}
		}, []int{1}},
		"the queue is too long": {func(_ string, _ options, r *result) { r.LowLatency.P99 = 2.1 }, []int{1, 6, 8}},
		"no packet is ECT(1)":   {func(_ string, _ options, r *result) { r.LowLatency = nil }, []int{1, 6, 8, 13}},
		"a frame is lost":       {func(_ string, _ options, r *result) { r.FramesUndecodable = 1 }, []int{1, 5, 9}},
		"late": {func(text string, _ options, r *result) {
			if text == "steady:100" {
				r.Latency.P95 = 49
			}
		}, []int{2}},
		"slow":                    {func(_ string, _ options, r *result) { r.SecondsToTarget = figure(1.1) }, []int{3}},
		"a probe fills the queue": {func(_ string, _ options, r *result) { r.Queue.Max = 11 }, []int{3}},
		"starved beside two flows": {func(text string, o options, r *result) {
			if text == "prague:2" && paper(o) {
				r.ShareOfFair = figure(0.8)
			}
		}, []int{4}},
		"greedy beside one flow": {func(text string, o options, r *result) {
			if text == "prague:1" && paper(o) {
				r.ShareOfFair = figure(1.3)
			}
		}, []int{4}},
		"a low estimate": {func(_ string, _ options, r *result) { r.EstimateShare = 0.44 }, []int{5}},
		"paced too long": {func(_ string, _ options, r *result) { r.Latency.P95 = 33 }, []int{5}},
		"greedy": {func(_ string, _ options, r *result) { r.ShareOfFair = figure(1.3) },
			[]int{4, 6}},
		"starved at 100 ms": {func(_ string, o options, r *result) {
			if o.RTT == 100*time.Millisecond {
				r.ShareOfFair = figure(0.49)
			}
		}, []int{7}},
		"half of fair at 50 ms": {func(_ string, o options, r *result) {
			if o.RTT == 50*time.Millisecond {
				r.ShareOfFair = figure(0.5)
			}
		}, []int{7}},
		"starved by Cubic": {func(text string, o options, r *result) {
			if text == "cubic:3" && o.Queue == netem.QueueDualPI2 {
				r.ShareOfFair = figure(0.7)
			}
		}, []int{8}},
		"audio waits":                 {func(_ string, _ options, r *result) { r.AudioQueue = figure(3.1) }, []int{8}},
		"a long queue after the fall": {func(_ string, _ options, r *result) { r.Cliff.LongestQueue = 101 }, []int{9}},
		"a queue that stays":          {func(_ string, _ options, r *result) { r.Cliff.ShortAfter = 0.31 }, []int{9}},
		"traces are used too little": {func(text string, _ options, r *result) {
			if strings.HasPrefix(text, "trace:") {
				r.Utilisation = 0.74
			}
		}, []int{10}},
		"late on one trace": {func(text string, _ options, r *result) {
			if strings.HasSuffix(text, "two.csv") {
				r.Latency.P95 = 71
			}
		}, []int{10}},
		"slow to notice":   {func(_ string, _ options, r *result) { r.FallbackSeconds = figure(0.6) }, []int{11}},
		"no ECN to bleach": {func(_ string, _ options, r *result) { r.FallbackSeconds = nil }, []int{11}},
		"worse than gcc after it": {func(text string, o options, r *result) {
			if text == "bleach:mark" && o.Estimator.Controller == congestion.ControllerAuto {
				r.Utilisation = 0.9
			}
		}, []int{11}},
		"Cubic starves": {func(_ string, o options, r *result) {
			if o.CubicECN {
				r.Others.ShareOfFair = figure(0.6)
			}
		}, []int{12}},
		"a classic queue is not recognised": {func(_ string, o options, r *result) {
			if o.CubicECN {
				r.Codepoints = r.Codepoints[:1]
			}
		}, []int{12}},
		"or late": {func(_ string, o options, r *result) {
			if o.CubicECN {
				r.Codepoints[1].Seconds = 23.6
			}
		}, []int{12}},
		"or without a mark": {func(_ string, o options, r *result) {
			if o.CubicECN && o.Seed == 3 {
				r.FirstMarkSeconds = nil
			}
		}, []int{12}},
		"or no packet is ECN-capable": {func(_ string, o options, r *result) {
			if o.CubicECN {
				r.Codepoints, r.FirstMarkSeconds = nil, nil
			}
		}, []int{12}},
		"one false alarm": {func(_ string, o options, r *result) {
			if o.Seed == 17 {
				r.Codepoints = append(r.Codepoints, control.CodepointFigures{Seconds: 3, Codepoint: "ECT(0)"})
			}
		}, []int{12}},
		"the uplink is used too little": {func(text string, _ options, r *result) {
			if text == "uplink:20" {
				r.Utilisation = 0.89
			}
		}, []int{13}},
		"unequal":           {func(_ string, _ options, r *result) { r.JainIndex = figure(0.97) }, []int{14}},
		"others are marked": {func(_ string, _ options, r *result) { r.Room.LargestChange = 0.021 }, []int{14}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := missed(t, test.spoil); !slices.Equal(got, test.missed) {
				t.Errorf("checks %v miss a target, expected %v", got, test.missed)
			}
		})
	}
}

// TestConditions: every case has the controller of L4S and the queue of its claim.
func TestConditions(t *testing.T) {
	var gcc, others atomic.Int64
	b := newBench(t, func(text string, o control.Options) (*control.Result, error) {
		switch {
		case o.Estimator.Controller == congestion.ControllerGCC && strings.HasPrefix(text, "bleach:"):
			gcc.Add(1)
		case o.Estimator.Controller != congestion.ControllerAuto:
			t.Errorf("%s runs with %s", text, o.Estimator.Controller)
		}
		if o.Queue != netem.QueueDualPI2 {
			others.Add(1)
		}
		return good(text, o), nil
	})
	for _, c := range checks(b, nil) {
		if _, err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	// Three cases beside Prague and three beside Cubic in the paper's queue, and one CoDel.
	if seeds := int64(b.seeds); gcc.Load() != 4*seeds || others.Load() != 7*seeds {
		t.Errorf("%d runs with gcc and %d with other queues, expected 4 and 7 of each seed", gcc.Load(), others.Load())
	}
}

// TestBrokenChecks: a failed run ends its check with the error of the run, and missing traces are reported as a skip.
func TestBrokenChecks(t *testing.T) {
	broken := errors.New("broken")
	b := newBench(t, func(string, control.Options) (*control.Result, error) { return nil, broken })
	for i, c := range checks(b, nil) {
		if _, err := c.Run(t.Context()); !errors.Is(err, broken) {
			t.Errorf("check %d: got %v, want the run's error", i+1, err)
		}
	}
	b.traces = t.TempDir()
	lines, err := recordedLinks(t.Context(), b)
	if err != nil || len(lines) != 1 || lines[0].Skipped == "" {
		t.Errorf("got %v, %v, want one line that is skipped", lines, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := room(ctx, newBench(t, func(text string, o control.Options) (*control.Result, error) {
		return good(text, o), nil
	})); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was cancelled", err)
	}
}

// TestEndToEnd: the cases run again end to end, one at a time, with the bounds of a network on the same machine. Audio
// and false alarms are measured in virtual time only.
func TestEndToEnd(t *testing.T) {
	var running atomic.Int64
	live := newHosts(t, func(text string, o control.Options) (*control.Result, error) {
		if running.Add(1) > 1 {
			t.Error("two cases at the same time")
		}
		defer running.Add(-1)
		if o.Audio || o.Seed != 1 {
			t.Errorf("%s with audio %t and seed %d", text, o.Audio, o.Seed)
		}
		r := good(text, o)
		r.Utilisation, r.LowLatency.P99, r.AudioQueue = 0.91, 2.9, nil
		r.Emulation = &control.EmulationFigures{Valid: true, LateP95: 0.3}
		return r, nil
	})
	virtual := newBench(t, func(text string, o control.Options) (*control.Result, error) { return good(text, o), nil })
	for i, c := range checks(virtual, live) {
		lines, err := c.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		kinds := map[string]int{}
		for _, l := range lines {
			kind, _, _ := strings.Cut(l.Name, ", ")
			kinds[kind]++
			if l.Missed() {
				t.Errorf("check %d: %v", i+1, l)
			}
		}
		if len(kinds) != 2 || kinds["virtual time"] < 2 || kinds["end to end"] < 2 {
			t.Errorf("check %d: lines by kind are %v, expected both kinds", i+1, kinds)
		}
		if last := lines[len(lines)-1]; !strings.HasSuffix(last.Name, "lateness of the emulated network, p95") {
			t.Errorf("check %d: last line %v, expected the lateness", i+1, last)
		}
	}
	// Without root, the first part is still measured.
	live = newHosts(t, func(string, control.Options) (*control.Result, error) {
		return nil, fmt.Errorf("start the network: %w", router.ErrPrivileges)
	})
	lines, err := checks(virtual, live)[1].Run(t.Context())
	if err != nil || len(lines) != 5 || lines[0].Missed() || lines[4].Skipped == "" {
		t.Errorf("got %v, %v, want four lines and one that is skipped", lines, err)
	}
}

// TestDisturbedRuns: a run is repeated only if the machine was disturbed, whatever its figures are. The last attempt
// counts, and a run whose emulated network was late misses a target.
func TestDisturbedRuns(t *testing.T) {
	type emulation = control.EmulationFigures
	disturbed := emulation{Reason: "late", Disturbance: "a thread woke up late"}
	for name, test := range map[string]struct {
		runs                []emulation
		made, valid, missed int
	}{
		"undisturbed":      {[]emulation{{Valid: true}}, 1, 1, 0},
		"disturbed once":   {[]emulation{disturbed, {Valid: true}}, 2, 1, 0},
		"valid, disturbed": {[]emulation{{Valid: true, Disturbance: "a thread woke up late"}, {Valid: true}}, 2, 1, 0},
		"late by itself":   {[]emulation{{Reason: "late"}, {Valid: true}}, 1, 0, 1},
		"always disturbed": {[]emulation{disturbed, disturbed, disturbed, {Valid: true}}, 3, 0, 1},
	} {
		made := 0
		b := newHosts(t, func(text string, o control.Options) (*control.Result, error) {
			r := good(text, o)
			r.Emulation, r.SecondsToTarget = &test.runs[made], figure(float64(made))
			made++
			return r, nil
		})
		lines, err := ramp(t.Context(), b)
		if err != nil || len(lines) != 6 {
			t.Fatalf("%s: got %v, %v, want three lines and three of conditions", name, lines, err)
		}
		first, valid, discarded := lines[0], lines[3], lines[4]
		if made != test.made || first.Figure != float64(made-1) || discarded.Figure != float64(made-1) {
			t.Errorf("%s: %d runs, %v, %v, want the figures of run %d", name, made, first, discarded, test.made)
		}
		if valid.Figure != float64(test.valid) || valid.Missed() != (test.missed > 0) {
			t.Errorf("%s: %v, want %d", name, valid, test.valid)
		}
	}
}

// TestExternal: programs in folders are compared with the server on the same links; others are skipped.
func TestExternal(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"scream_bw_test_tx", "scream_bw_test_rx"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	ours := newHosts(t, func(text string, o control.Options) (*control.Result, error) { return inTime(text, o), nil })
	for name, test := range map[string]struct {
		spoil  func(theirs *control.Result)
		missed int
	}{
		"as good": {func(*control.Result) {}, 0},
		"better": {func(r *control.Result) {
			r.ShareOfCapacity, r.LowLatency.P99, r.Cliff.LongestQueue = 0.98, 1, 80
		}, 3},
		"worse": {func(r *control.Result) {
			r.ShareOfCapacity, r.LowLatency.P99, r.Cliff.LongestQueue = 0.7, 2, 200
		}, 0},
		"not over L4S": {func(r *control.Result) { r.LowLatency = nil }, 1},
	} {
		c := &external{ours, Options{Live: true, Scream: folder}, func(_ context.Context, text string,
			o control.Options, e *rival.External) (*control.Result, error) {
			if e.Name != "SCReAM" {
				t.Errorf("%s ran", e.Name)
			}
			r := inTime(text, o)
			test.spoil(r)
			return r, nil
		}}
		lines, err := c.Run(t.Context())
		if err != nil || len(lines) != 7 || lines[3].Name != "udp_prague" || lines[3].Skipped == "" ||
			lines[4].Target != "= 4" {
			t.Fatalf("%s: got %v, %v, want three lines, udp_prague skipped and the conditions of 4 runs", name, lines,
				err)
		}
		missed := 0
		for _, l := range lines {
			if l.Missed() {
				missed++
			}
		}
		if missed != test.missed {
			t.Errorf("%s: %d lines of %v miss a target, expected %d", name, missed, lines, test.missed)
		}
	}
	broken := &external{ours, Options{Live: true, UDPPrague: folder}, nil}
	if _, err := broken.Run(t.Context()); !errors.Is(err, lab.ErrProgram) {
		t.Errorf("got %v, want that a program is missing", err)
	}
	lines, err := EndToEnd(Options{}, NewExternal(Options{}, lab.Progress{})).Run(t.Context())
	if err != nil || len(lines) != 1 || lines[0].Skipped == "" {
		t.Errorf("got %v, %v, want a line that is skipped", lines, err)
	}
}

// TestSimulation: the checks run simulations, and return results in the order of the cases.
func TestSimulation(t *testing.T) {
	b := Checks(Options{}, lab.Progress{})[0].(*check).virtual
	var trials []trial
	for _, text := range []string{"steady:2", "steady:5", "steady:3"} {
		o := options()
		o.Duration = 2 * time.Second
		trials = append(trials, trial{text, o})
	}
	results, err := b.run(t.Context(), trials...)
	if err != nil {
		t.Fatal(err)
	}
	for i, runs := range results {
		frames := make(map[uint64]bool)
		for _, r := range runs {
			if r.Case != trials[i].text || r.FramesSent == 0 || r.LowLatency == nil {
				t.Errorf("result %d is %+v, want one of %s over L4S", i, r, trials[i].text)
			}
			frames[r.LowLatency.Packets] = true
		}
		if len(runs) != b.seeds || len(frames) < 2 {
			t.Errorf("%d runs of %s with %d numbers of packets, want different seeds", len(runs), trials[i].text,
				len(frames))
		}
	}
	if _, err := b.run(t.Context(), trial{"steep:5", options()}); !errors.Is(err, control.ErrCase) {
		t.Errorf("got %v, want ErrCase", err)
	}
}
