package experiment_test

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/experiment/experimenttest"
)

func near(a, b, tolerance float64) bool { return math.Abs(a-b) <= tolerance }

// waves returns the experiment of experimenttest.File.
func waves(t *testing.T) *experiment.Experiment {
	t.Helper()
	return experimenttest.Parse(t, experimenttest.Run, experimenttest.File)
}

// single is a file of one cell and one iteration.
const single = "{name: a, title: b, scenario: test/waves, iterations: 1, seconds: 1}"

func TestRunIteratesAllCells(t *testing.T) {
	r := experimenttest.Result(t, waves(t), experiment.Options{Seed: 7})
	if len(r.Cells) != 4 {
		t.Fatalf("expected 4 cells, got %d", len(r.Cells))
	}
	c := &r.Cells[0]
	if len(c.Iterations) != 3 || c.Iterations[2].Seed != 9 || c.Worth != experiment.Valid {
		t.Errorf("expected 3 valid iterations with seeds from 7, got %+v", c.Iterations)
	}
	// Iterations have means of 10, 11 and 12.
	latency := c.Figure("latency")
	if latency == nil || latency.Mean != 11 || latency.Interval == nil ||
		!near(latency.Interval.High-latency.Interval.Low, 2*4.30265/1.73205, 1e-3) {
		t.Errorf("expected 11 ± 2.484, got %+v", latency)
	}
	if latency.Paper == nil || latency.Paper.Value != 12.5 || latency.Paper.Why == "" {
		t.Errorf("expected the paper's figure with a sentence, got %+v", latency.Paper)
	}
	twice := r.Comparisons[0]
	if twice.Value == nil || !near(*twice.Value, 21.0/11, 1e-9) || twice.Interval == nil || *twice.Paper != 1.9 {
		t.Errorf("expected 21/11 with an interval, got %+v", twice)
	}
	if less := r.Comparisons[1]; less.Value == nil || !near(*less.Value, 100*(1-5.0/15), 1e-9) {
		t.Errorf("expected 66.7 %% less, got %+v", less)
	}
	if len(r.Notes) != 1 {
		t.Errorf("expected the note once, got %q", r.Notes)
	}
}

func TestShortRun(t *testing.T) {
	r := experimenttest.Result(t, waves(t), experiment.Options{Short: true})
	if len(r.Cells) != 2 || len(r.Cells[0].Iterations) != 1 || r.IterationSeconds != 0.5 {
		t.Fatalf("expected one iteration of 0.5 s of 2 cells, got %d cells", len(r.Cells))
	}
	s := r.Cells[0].Figure("latency")
	if s == nil || s.Interval == nil || s.Interval.Method != experiment.MethodBatches {
		t.Errorf("expected an interval from parts of the only iteration, got %+v", s)
	}
	if less := r.Comparisons[1]; less.Value != nil {
		t.Errorf("expected no value of a cell that did not run, got %g", *less.Value)
	}
}

func TestOnly(t *testing.T) {
	only := func(height int) experiment.Options {
		return experiment.Options{Only: experiment.Parameters{{Name: "height", Value: height}}, Iterations: 2,
			Duration: time.Second}
	}
	r := experimenttest.Result(t, waves(t), only(30))
	if len(r.Cells) != 1 || len(r.Cells[0].Iterations) != 2 || r.IterationSeconds != 1 {
		t.Errorf("expected two iterations of 1 s of one cell, got %+v", r.Cells)
	}
	if _, err := waves(t).Run(t.Context(), only(31)); !errors.Is(err, experiment.ErrNoCells) {
		t.Errorf("expected an error if no cell is left, got %v", err)
	}
}

func TestValidityOfCells(t *testing.T) {
	e := experimenttest.Parse(t, experimenttest.Run, experimenttest.Fates)
	r := experimenttest.Result(t, e, experiment.Options{})
	want := map[string]experiment.Validity{"fate=good": experiment.Valid, "fate=sinks": experiment.Failed,
		"fate=skipped": experiment.Skipped, "fate=slow": experiment.CPUBound, "fate=late": experiment.Invalid}
	for i := range r.Cells {
		c := &r.Cells[i]
		if c.Worth != want[c.Name] || len(c.Iterations) != 2 {
			t.Errorf("%s: expected 2 iterations %s, got %d %s", c.Name, want[c.Name], len(c.Iterations), c.Worth)
		}
		if c.Worth != experiment.Valid && c.Iterations[0].Reason == "" {
			t.Errorf("%s: expected a reason", c.Name)
		}
		if measured := c.Figure("latency") != nil; measured != (c.Worth == experiment.Valid ||
			c.Worth == experiment.CPUBound || c.Worth == experiment.Invalid) {
			t.Errorf("%s: the cell has figures: %v", c.Name, measured)
		}
	}
}

func TestInterruptionKeepsIterations(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	count := 0
	e := experimenttest.Parse(t, func(ctx context.Context, w experimenttest.Waves, s experiment.Settings) (
		*experiment.Outcome, error) {
		if count++; count == 2 {
			cancel()
			return nil, ctx.Err()
		}
		return experimenttest.Run(ctx, w, s)
	}, experimenttest.File)
	folder := t.TempDir()
	r, err := e.Run(ctx, experiment.Options{Folder: folder, Shared: filepath.Join(folder, "shared")})
	if err != nil || !r.Interrupted || r.Counts()[experiment.Valid] != 1 || r.Counts()[experiment.Failed] != 0 {
		t.Fatalf("expected one valid iteration and no failed one, got %v, %v", r.Counts(), err)
	}
}

func TestRawFiles(t *testing.T) {
	e := experimenttest.Parse(t, func(_ context.Context, _ experimenttest.Waves, s experiment.Settings) (
		*experiment.Outcome, error) {
		// Files of 64 kB and more are compressed.
		for name, size := range map[string]int{"small": 10, "large.jsonl": 128 << 10} {
			if err := os.WriteFile(s.File(name), make([]byte, size), 0o644); err != nil {
				return nil, err
			}
		}
		return experiment.NewOutcome(), nil
	}, single)
	for _, none := range []bool{false, true} {
		folder := t.TempDir()
		if _, err := e.Run(t.Context(), experiment.Options{Folder: folder, Shared: filepath.Join(folder, "shared"),
			NoRaw: none}); err != nil {
			t.Fatal(err)
		}
		for name, there := range map[string]bool{"small": !none, "large.jsonl": false, "large.jsonl.gz": !none} {
			if _, err := os.Stat(filepath.Join(folder, "raw", "only", "0", name)); (err == nil) != there {
				t.Errorf("without raw files: %v: %s: expected it to be there: %v, got %v", none, name, there, err)
			}
		}
	}
}

// zero is not a constant, so the compiler accepts a division by zero.
var zero = 0.0

func TestUnknownFiguresFail(t *testing.T) {
	for name, set := range map[string]func(*experiment.Outcome){
		"unknown":   func(o *experiment.Outcome) { o.Set("depth", 1) },
		"no number": func(o *experiment.Outcome) { o.Set("rate", 1/zero) },
	} {
		e := experimenttest.Parse(t, func(context.Context, experimenttest.Waves, experiment.Settings) (
			*experiment.Outcome, error) {
			o := experiment.NewOutcome()
			set(o)
			return o, nil
		}, single)
		r := experimenttest.Result(t, e, experiment.Options{})
		if r.Cells[0].Worth != experiment.Failed {
			t.Errorf("%s: expected a failed iteration, got %s", name, r.Cells[0].Worth)
		}
	}
}

// TestRatioToZeros: a cell that measured 0 in most iterations has a mean above 0, but a ratio to this mean has no
// bound. The result can still be written.
func TestRatioToZeros(t *testing.T) {
	e := experimenttest.Parse(t, func(_ context.Context, w experimenttest.Waves, s experiment.Settings) (
		*experiment.Outcome, error) {
		o := experiment.NewOutcome()
		o.Set("rate", w.Height)
		if w.Height == 1 && s.Iteration < 2 {
			o.Set("rate", 0)
		}
		return o, nil
	}, `{name: a, title: b, why: c, scenario: test/waves, iterations: 3, seconds: 1,
		matrix: [{height: [1, 2]}],
		comparisons: [{name: higher, figure: rate, of: {height: 2}, to: {height: 1}, as: ratio}]}`)
	r := experimenttest.Result(t, e, experiment.Options{})
	if higher := r.Comparisons[0]; higher.Value == nil || !near(*higher.Value, 6, 1e-9) || higher.Interval != nil {
		t.Errorf("expected 6 without interval, got %+v", higher)
	}
}

// TestValuesThatAreNotNumbers has scenarios return values that no report can print: the iteration fails, and the run
// continues.
func TestValuesThatAreNotNumbers(t *testing.T) {
	for want, fill := range map[string]func(*experiment.Outcome){
		`figure "rate"`:   func(o *experiment.Outcome) { o.Set("rate", math.NaN()) },
		`figure "encode"`: func(o *experiment.Outcome) { o.Sample("encode", []float64{1, math.Inf(1)}) },
		`series "rate"`: func(o *experiment.Outcome) {
			o.Series("rate", "s", "Mbit/s", [][2]float64{{1, 2}, {2, math.Inf(-1)}})
		},
	} {
		e := experimenttest.Parse(t, func(context.Context, experimenttest.Waves, experiment.Settings) (
			*experiment.Outcome, error) {
			o := experiment.NewOutcome()
			fill(o)
			return o, nil
		}, "{name: a, title: b, scenario: test/waves, iterations: 2, seconds: 1}")
		r := experimenttest.Result(t, e, experiment.Options{})
		if got := r.Cells[0].Iterations; len(got) != 2 || got[1].Validity != experiment.Failed ||
			!strings.Contains(got[1].Reason, want) {
			t.Errorf("expected failed iterations with %q, got %+v", want, got)
		}
	}
}
