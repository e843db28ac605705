package control

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/claim"
)

// good returns a result that meets every target.
func good() *Result {
	return &Result{
		Utilisation: 0.95, ShareOfCapacity: 0.85, EstimateShare: 0.98, Queue: QueueFigures{5, 20, 30, 40},
		Latency:    LatencyFigures{30, 50, 60},
		FramesSent: 10_000, SecondsToTarget: figure(1), RecoverySeconds: figure(2), QueueSeconds: figure(0.5),
		QualitySeconds: figure(0.1),
		ShareOfFair:    figure(0.9), JainIndex: figure(0.99), Others: &OtherFigures{Loss: 0.001, QueueP95: 20},
	}
}

// traceFolderWith makes a folder with two traces.
func traceFolderWith(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"one.csv", "two.csv"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("0,10\n1,10\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// missed runs all checks on the results returned by run, and returns the numbers of the checks with missed targets.
func missed(t *testing.T, run func(text string, o Options) *Result) []int {
	t.Helper()
	b := bench{traces: traceFolderWith(t), run: func(_ context.Context, text string, o Options) (*Result,
		error) {
		return run(text, o), nil
	}}
	var numbers []int
	for i, c := range virtual(b) {
		lines, err := c.Run(context.Background())
		if err != nil || len(lines) == 0 || c.Name() == "" {
			t.Fatalf("check %d, %q: %d lines, %v", i+1, c.Name(), len(lines), err)
		}
		if slices.ContainsFunc(lines, func(l claim.Line) bool { return l.Missed() }) {
			numbers = append(numbers, i+1)
		}
	}
	return numbers
}

// TestTargets: a figure worse than its claim fails the check of the claim and no other check.
func TestTargets(t *testing.T) {
	for _, c := range []struct {
		name   string
		spoil  func(text string, o Options, r *Result)
		missed []int
	}{
		{"nothing", func(string, Options, *Result) {}, nil},
		{"one link is used too little", func(text string, _ Options, r *Result) {
			if text == "steady:50" {
				r.Utilisation = 0.84
			}
		}, []int{1}},
		{"a queue is too long", func(text string, _ Options, r *Result) {
			if text == "steady:2" {
				r.Queue.P95 = 31
			}
		}, []int{1}},
		{"a frame is lost", func(_ string, _ Options, r *Result) { r.FramesUndecodable = 1 }, []int{1, 2, 3}},
		{"slow", func(_ string, _ Options, r *Result) { r.SecondsToTarget = figure(4) }, []int{2}},
		{"packets are lost", func(_ string, _ Options, r *Result) { r.PacketsDiscarded = 1 }, []int{2}},
		{"slow to recover", func(_ string, _ Options, r *Result) { r.RecoverySeconds = figure(6) }, []int{3, 4}},
		{"slow to recover from an outage", func(_ string, _ Options, r *Result) { r.RecoverySeconds = figure(3.1) },
			[]int{4}},
		{"the queue stays long", func(_ string, _ Options, r *Result) { r.QueueSeconds = figure(1.6) }, []int{3}},
		{"quality falls late", func(_ string, _ Options, r *Result) { r.QualitySeconds = figure(0.6) }, []int{3}},
		{"late", func(_ string, _ Options, r *Result) { r.Latency.P95 = 151 }, []int{4}},
		{"traces are used too little", func(text string, _ Options, r *Result) {
			if strings.HasPrefix(text, "trace:") {
				r.Utilisation = 0.7
			}
		}, []int{4}},
		{"too little beside others", func(_ string, _ Options, r *Result) { r.ShareOfFair = figure(0.4) }, []int{5}},
		{"frames are lost beside others", func(text string, _ Options, r *Result) {
			if text == "cubic:3" {
				r.FramesUndecodable = 11
			}
		}, []int{5}},
		{"one of two receivers loses frames", func(text string, _ Options, r *Result) {
			if text == "fair:2" {
				r.FramesUndecodable = 11
			}
		}, []int{5}},
		{"unequal", func(_ string, _ Options, r *Result) { r.JainIndex = figure(0.9) }, []int{5}},
		{"probes hurt others", func(_ string, o Options, r *Result) {
			if o.Estimator.Probe.Enabled {
				r.Others.QueueP95 = 31
			}
		}, []int{5}},
		{"others lose more", func(_ string, o Options, r *Result) {
			if o.Estimator.Probe.Enabled {
				r.Others.Loss = 0.0016
			}
		}, []int{5}},
		{"losses make it collapse", func(text string, _ Options, r *Result) {
			if text == "loss:5" {
				r.EstimateShare = 0.7
			}
		}, []int{6}},
		{"a loss in a hundred is not repaired", func(text string, o Options, r *Result) {
			if text == "loss:1" && o.RTT == 20*time.Millisecond {
				r.FramesUndecodable = 11
			}
		}, []int{6}},
		{"repairs come too late", func(text string, o Options, r *Result) {
			if text == "loss:10" && o.RTT == 150*time.Millisecond {
				r.FramesUndecodable = 600
			}
		}, []int{6}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := missed(t, func(text string, o Options) *Result {
				r := good()
				c.spoil(text, o, r)
				return r
			})
			if !slices.Equal(got, c.missed) {
				t.Errorf("checks %v miss a target, expected %v", got, c.missed)
			}
		})
	}
}

// TestRampsEndToEnd: in real time the competitors are measured in one run beside a fast ramp and one beside a slow
// ramp, of the same length and under the same bound. The line names state the number of runs.
func TestRampsEndToEnd(t *testing.T) {
	for _, test := range []struct {
		name           string
		checks         func(bench) []lab.Check
		runs           int
		fast           OtherFigures
		missed, single int
	}{
		{"one run", endToEnd, 1, OtherFigures{Loss: 0.0015, QueueP95: 30}, 0, 24},
		{"others lose more", endToEnd, 1, OtherFigures{Loss: 0.0016, QueueP95: 30}, 6, 24},
		{"others wait longer", endToEnd, 1, OtherFigures{Loss: 0.0015, QueueP95: 31}, 6, 24},
		{"virtual time", virtual, 8, OtherFigures{Loss: 0.001, QueueP95: 20}, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			type ramp struct {
				text, queue string
				fast        bool
			}
			seeds := map[ramp][]uint64{}
			b := bench{traces: t.TempDir(), run: func(_ context.Context, text string, o Options) (*Result, error) {
				r := good()
				if o.Duration == 0 {
					return r, nil
				}
				if o.Duration != 22*time.Second {
					t.Errorf("%s for %v", text, o.Duration)
				}
				key := ramp{text, o.Queue, o.Estimator.Probe.Enabled}
				seeds[key] = append(seeds[key], o.Seed)
				if key.fast {
					r.Others = &test.fast
				}
				return r, nil
			}}
			lines, err := test.checks(b)[4].Run(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			missed, single := 0, 0
			for _, l := range lines {
				if l.Missed() {
					missed++
				}
				if strings.Contains(l.Name, "one run each") {
					single++
				}
			}
			if missed != test.missed || single != test.single {
				t.Errorf("%d lines miss a target and %d are of one run, expected %d and %d", missed, single,
					test.missed, test.single)
			}
			// Three queues, one and three flows, fast and slow.
			if len(seeds) != 12 {
				t.Errorf("ramps %v, expected twelve", seeds)
			}
			for key, of := range seeds {
				if slices.Sort(of); len(slices.Compact(of)) != test.runs {
					t.Errorf("%+v with the seeds %v, expected %d", key, of, test.runs)
				}
			}
		})
	}
}

// TestRampOverEarly: the check fails with an error if the run ended before the competitors could be measured.
func TestRampOverEarly(t *testing.T) {
	b := bench{run: func(context.Context, string, Options) (*Result, error) {
		r := good()
		r.Others = nil
		return r, nil
	}}
	if _, err := endToEnd(b)[4].Run(context.Background()); !errors.Is(err, errEarly) {
		t.Errorf("got %v, want errEarly", err)
	}
}

// TestBrokenChecks: a failed run ends its check with the error, and missing traces are reported as a skip.
func TestBrokenChecks(t *testing.T) {
	broken := errors.New("broken")
	b := bench{traces: traceFolderWith(t), run: func(context.Context, string, Options) (*Result, error) {
		return nil,
			broken
	}}
	for i, c := range virtual(b) {
		if _, err := c.Run(context.Background()); !errors.Is(err, broken) {
			t.Errorf("check %d: got %v, want the run's error", i+1, err)
		}
	}
	b.traces = t.TempDir()
	lines, err := virtual(b)[3].Run(context.Background())
	if err != nil || len(lines) != 1 || lines[0].Skipped == "" {
		t.Errorf("got %v, %v, want one line that is skipped", lines, err)
	}
}

// TestRunVirtual: the checks run a simulation.
func TestRunVirtual(t *testing.T) {
	r, err := results(RunVirtual)(context.Background(), "steady:5", short(3))
	if err != nil || r.FramesSent == 0 {
		t.Errorf("got %+v, %v", r, err)
	}
	if _, err := results(RunVirtual)(context.Background(), "steep:5", short(3)); !errors.Is(err, ErrCase) {
		t.Errorf("got %v, want ErrCase", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := results(RunVirtual)(ctx, "steady:5", short(3)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was cancelled", err)
	}
}
