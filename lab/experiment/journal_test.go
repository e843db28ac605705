package experiment_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/experiment/experimenttest"
)

// journaled is an experiment of which a test counts and ends the iterations.
type journaled struct {
	library *experiment.Library
	run     *experiment.Experiment
	folder  string
	// ran are the iterations that ran, as cell and number. If stop is reached, the run is cancelled.
	ran    []string
	stop   int
	cancel context.CancelFunc
}

func newJournaled(t *testing.T) *journaled {
	t.Helper()
	j := &journaled{folder: t.TempDir()}
	counted := func(ctx context.Context, w experimenttest.Waves, s experiment.Settings) (*experiment.Outcome, error) {
		j.ran = append(j.ran, fmt.Sprintf("%g %s %d", w.Height, w.Wind, s.Iteration))
		if len(j.ran) == j.stop {
			j.cancel()
		}
		return experimenttest.Run(ctx, w, s)
	}
	var err error
	files := map[string]string{"waves.yaml": experimenttest.File}
	if j.library, err = experimenttest.Library(counted, files); err != nil {
		t.Fatal(err)
	}
	if j.run, err = j.library.Find("waves"); err != nil {
		t.Fatal(err)
	}
	return j
}

// begin runs the experiment until stop iterations have begun, 0 for all.
func (j *journaled) begin(t *testing.T, stop int, o experiment.Options) (*experiment.Result, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	j.ran, j.stop, j.cancel = nil, stop, cancel
	o.Folder, o.Shared = j.folder, filepath.Join(j.folder, "shared")
	return j.run.Run(ctx, o)
}

// TestResume ends a run in its middle, as a kill does while a line is written, and continues the run.
func TestResume(t *testing.T) {
	whole := newJournaled(t)
	want, err := whole.begin(t, 0, experiment.Options{Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	order := slices.Clone(whole.ran)

	j := newJournaled(t)
	if _, err := j.begin(t, 6, experiment.Options{Seed: 5, Resume: true}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(j.ran, order[:6]) {
		t.Errorf("expected the first iterations %v, got %v", order[:6], j.ran)
	}
	name := filepath.Join(j.folder, experiment.JournalFile)
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, text[:len(text)-100], 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := j.begin(t, 0, experiment.Options{Seed: 5, Resume: true})
	if err != nil {
		t.Fatal(err)
	}
	// The sixth iteration was cancelled, and the line of the fifth is incomplete.
	if !slices.Equal(j.ran, order[4:]) {
		t.Errorf("expected the remaining iterations %v, got %v", order[4:], j.ran)
	}
	sameFigures(t, want, got)
	if got.Interrupted {
		t.Error("the run is complete")
	}
}

// TestOrder checks that cells have another order in each iteration, and the same with the same seed.
func TestOrder(t *testing.T) {
	j := newJournaled(t)
	if _, err := j.begin(t, 0, experiment.Options{Seed: 1}); err != nil {
		t.Fatal(err)
	}
	first := slices.Clone(j.ran)
	if _, err := j.begin(t, 0, experiment.Options{Seed: 1}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(first, j.ran) {
		t.Errorf("the same seed had the orders %v and %v", first, j.ran)
	}
	if _, err := j.begin(t, 0, experiment.Options{Seed: 2}); err != nil {
		t.Fatal(err)
	}
	if slices.Equal(first, j.ran) {
		t.Errorf("two seeds had the order %v", first)
	}
}

// TestReopen computes the figures of a run again, from the journal alone.
func TestReopen(t *testing.T) {
	j := newJournaled(t)
	want, err := j.begin(t, 0, experiment.Options{Only: experiment.Parameters{{Name: "wind", Value: "west"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(j.folder, "raw")); err != nil {
		t.Fatal(err)
	}
	got, err := j.library.Reopen(j.folder)
	if err != nil {
		t.Fatal(err)
	}
	sameFigures(t, want, got)
	if got.Interrupted || !got.Begun.Equal(want.Begun) || got.Seconds <= 0 || got.Seconds > want.Seconds {
		t.Errorf("expected the times of the run, got %+v", got)
	}
	if _, err := j.begin(t, 1, experiment.Options{}); err != nil {
		t.Fatal(err)
	}
	if got, err = j.library.Reopen(j.folder); err != nil || !got.Interrupted {
		t.Errorf("expected an interrupted run, got %v", err)
	}
}

// TestRevise computes a run again by a file with another relation, leaves out a cell that has changed, and refuses a
// file without the cells of the run.
func TestRevise(t *testing.T) {
	j := newJournaled(t)
	if _, err := j.begin(t, 0, experiment.Options{}); err != nil {
		t.Fatal(err)
	}
	revise := func(text, replacement string) (*experiment.Result, error) {
		file := strings.Replace(experimenttest.File, text, replacement, 1)
		if file == experimenttest.File {
			t.Fatalf("the file has no %q", text)
		}
		l, err := experimenttest.Library(experimenttest.Run, map[string]string{"waves.yaml": file})
		if err != nil {
			t.Fatal(err)
		}
		r, err := l.Reopen(j.folder)
		if err != nil {
			t.Fatal(err)
		}
		return r, l.Revise(r)
	}
	r, err := revise("as: ratio, paper: 1.9", "as: more, paper: 90")
	if err != nil || len(r.Comparisons) != 2 || len(r.Notes) != 1 {
		t.Fatalf("expected two relations and a note, got %+v, %v", r.Comparisons, err)
	}
	c := r.Comparisons[0]
	if *c.Paper != 90 || c.Unit != "%" || c.Value == nil || !near(*c.Value, 100*(21.0/11-1), 1e-9) {
		t.Errorf("expected 90.9 %% beside 90 %% of the paper, got %+v", c)
	}
	if r, err = revise("{wind: [east], height: [10, 30]}", "{wind: [east], height: [12, 30]}"); err != nil ||
		len(r.Cells) != 3 || r.Cells[2].Name != "wind=east height=30" {
		t.Errorf("expected the three cells in both files, got %+v, %v", r.Cells, err)
	}
	_, err = revise("parameters: {frames: 100}", "parameters: {frames: 50}")
	if !errors.Is(err, experiment.ErrJournal) {
		t.Errorf("expected an error of the cells, got %v", err)
	}
}

// TestDerived computes a quantile of samples from the journal of a version that does not have the quantile.
func TestDerived(t *testing.T) {
	j := newJournaled(t)
	if _, err := j.begin(t, 0, experiment.Options{}); err != nil {
		t.Fatal(err)
	}
	p90 := experiment.Quantity{Name: "latency_p90", Unit: "ms", Label: "90th percentile", Of: "latency", Share: 0.9}
	l, err := experiment.NewLibrary(experiment.Collection{Scenarios: map[string]experiment.Scenario{
		"test/waves": experiment.Define(experimenttest.Waves{Frames: 100}, append(experimenttest.Quantities(), p90),
			experimenttest.Run),
	}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := l.Reopen(j.folder)
	if err != nil {
		t.Fatal(err)
	}
	// The samples of iteration i are 5.5, 6.5, … 14.5 plus i, ten times each; their 90th percentile is 13.5 plus i.
	if s := r.Cells[0].Figure("latency_p90"); s == nil || s.Count != 3 || !near(s.Mean, 14.5, 1e-9) {
		t.Errorf("expected the mean of 13.5, 14.5 and 15.5, got %+v", s)
	}
}

// sameFigures compares two results as they are written.
func sameFigures(t *testing.T, want, got *experiment.Result) {
	t.Helper()
	text := func(r *experiment.Result) string {
		var b strings.Builder
		for i := range r.Cells {
			c := &r.Cells[i]
			_, _ = fmt.Fprintln(&b, c.Name, c.Worth)
			for _, f := range c.Figures {
				interval := f.Interval
				f.Interval = nil
				_, _ = fmt.Fprintf(&b, "\t%s %+v %+v\n", f.Name, f.Statistics, interval)
			}
		}
		for _, c := range r.Comparisons {
			if c.Value != nil {
				_, _ = fmt.Fprintf(&b, "%s %v %+v\n", c.Name, *c.Value, c.Interval)
			}
		}
		return b.String()
	}
	if text(want) != text(got) {
		t.Errorf("expected\n%s\ngot\n%s", text(want), text(got))
	}
}

// TestOtherRun continues journals that are not of the same run.
func TestOtherRun(t *testing.T) {
	j := newJournaled(t)
	if _, err := j.begin(t, 0, experiment.Options{Seed: 1}); err != nil {
		t.Fatal(err)
	}
	west := experiment.Parameters{{Name: "wind", Value: "west"}}
	for want, o := range map[string]experiment.Options{
		"the seed was 1, and is now 2":   {Seed: 2},
		"the number of iterations was 3": {Seed: 1, Iterations: 7},
		"the extent (short) was false":   {Seed: 1, Iterations: 3, Short: true, Duration: 2 * time.Second},
		"the version was , and":          {Seed: 1, Version: "v2"},
		"the selection of cells was":     {Seed: 1, Only: west},
	} {
		o.Resume = true
		if _, err := j.begin(t, 0, o); !errors.Is(err, experiment.ErrJournal) || !strings.Contains(err.Error(), want) {
			t.Errorf("expected %q, got %v", want, err)
		}
	}
	if len(j.ran) > 0 {
		t.Errorf("iterations ran: %v", j.ran)
	}
	for name, text := range map[string]string{"no gzip file": "{}", "an empty file": ""} {
		if err := os.WriteFile(filepath.Join(j.folder, experiment.JournalFile), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := j.library.Reopen(j.folder); !errors.Is(err, experiment.ErrJournal) {
			t.Errorf("%s: expected an error of the journal, got %v", name, err)
		}
	}
	if _, err := j.library.Reopen(t.TempDir()); !errors.Is(err, experiment.ErrJournal) {
		t.Errorf("no file: expected an error of the journal, got %v", err)
	}
}
