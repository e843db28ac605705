package fuzzing

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/suite"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/fuzz"
)

// Run fuzzes until all runs together have had the inputs, or until the time is over. Interrupted, the run keeps the
// counts of the tests that have ended. The error wraps suite.ErrSource if there is no checkout or no Go command.
func Run(ctx context.Context, o Options, progress lab.Progress) ([]claim.Line, error) {
	tree, err := suite.SourceTree(o.Folder, "test/fuzz")
	if err != nil {
		return nil, err
	}
	if _, err := suite.GoCommand(); err != nil {
		return nil, err
	}
	all, err := list(ctx, tree)
	if err != nil {
		return nil, err
	}
	counted, err := readState(o.State)
	if err != nil {
		return nil, err
	}
	r := &run{options: o, progress: progress, tree: tree, targets: network(all), counted: counted}
	if err := r.fuzz(ctx); err != nil {
		return nil, err
	}
	return r.lines(), nil
}

// run is a run in progress.
type run struct {
	options  Options
	progress lab.Progress
	tree     string
	targets  []target
	counted  state
}

// fuzz runs slices of tests until the run is over.
func (r *run) fuzz(ctx context.Context) error {
	corpora, err := fuzz.Corpora(ctx)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "fuzzing-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	binary := filepath.Join(scratch, "fuzz.test")
	for began := time.Now(); !r.over(began); {
		t := r.counted.next(r.targets)
		if t == nil {
			return nil
		}
		if err := fuzz.Build(ctx, r.tree, t.importPath, binary); err != nil {
			return fmt.Errorf("build the fuzz tests of %s: %w", t.path, err)
		}
		for _, test := range t.tests {
			if r.counted[t.name(test)].Failure != "" {
				continue
			}
			if err := r.slice(ctx, t, fuzz.Run{Binary: binary, Dir: t.dir, Test: test,
				Corpus: filepath.Join(corpora, t.importPath), Time: r.options.Slice}); err != nil {
				return err
			}
			if r.over(began) {
				return nil
			}
		}
	}
	return nil
}

// over reports whether a run that began at the given time is over.
func (r *run) over(began time.Time) bool {
	total, _ := r.counted.sum(r.targets)
	return total.Inputs >= r.options.Inputs || r.options.Time > 0 && time.Since(began) >= r.options.Time
}

// slice runs one test and writes the counts.
func (r *run) slice(ctx context.Context, t *target, one fuzz.Run) error {
	began := time.Now()
	outcome := one.Execute(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	lasted := time.Since(began)
	r.counted.add(t.name(one.Test), outcome, lasted)
	total, _ := r.counted.sum(r.targets)
	r.progress.Say("  %s: %d inputs in %v, %d in all", t.name(one.Test), outcome.Inputs, lasted.Round(time.Second),
		total.Inputs)
	if outcome.Failure != "" {
		r.progress.Say("  %s failed:\n%s", t.name(one.Test), outcome.Failure)
	}
	return r.counted.write(r.options.State)
}

// lines returns the results.
func (r *run) lines() []claim.Line {
	total, failures := r.counted.sum(r.targets)
	tests, least := int64(0), int64(-1)
	for _, t := range r.targets {
		for _, test := range t.tests {
			tests++
			if n := r.counted[t.name(test)].Inputs; least < 0 || n < least {
				least = n
			}
		}
	}
	lines := []claim.Line{
		claim.AtLeast("inputs", float64(total.Inputs), "", float64(r.options.Inputs)),
		claim.Exactly("fuzz tests with a crash or a failure", int64(len(failures)), "", 0),
		claim.Stated("fuzz tests of network bytes", float64(tests), ""),
		claim.Stated("inputs of the test with the fewest", float64(least), ""),
		claim.Stated("fuzzing time of all runs", total.Seconds/3600, "h"),
		claim.Stated("processor time of all runs", total.Processor/3600, "h"),
	}
	for _, name := range failures {
		lines = append(lines, claim.Fail(name, "the fuzz test failed"))
	}
	return lines
}
