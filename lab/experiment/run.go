package experiment

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/environment"
	"github.com/volsfu/volsfu/lab/hosts"
)

// Options select the extent of a run and the place of its files.
type Options struct {
	// Short runs the marked cells, to the experiment's short extent.
	Short bool
	// Iterations and Duration replace the experiment's if not 0.
	Iterations int
	Duration   time.Duration
	// Only limits the run to cells with these parameters.
	Only Parameters
	// Cells limits the run to cells with these names, nil for all.
	Cells []string
	Seed  uint64
	// Data is the folder of the test data, empty for the synthetic figure.
	Data string
	// Folder is the folder of all output: the report, and raw/CELL/ITERATION for each iteration. Shared may be common
	// to several experiments.
	Folder, Shared string
	// Resume continues the run whose journal is in Folder. Without a journal, the run begins.
	Resume bool
	// NoRaw removes the files of iterations. Otherwise the files are kept, and large files are compressed.
	NoRaw bool
	// Programs is the folder of the module's programs, empty for that of the running program.
	Programs string
	// Hosts run the roles, nil if this machine runs all of them. Source replaces the source of clouds if it is not
	// empty.
	Hosts  *hosts.Session
	Source string
	// Version is volsfu's, for the report.
	Version string
	// Environment is for the report, too.
	Environment *environment.Environment
	Progress    lab.Progress
}

// ErrNoCells reports that no cell is selected.
var ErrNoCells = errors.New("no cell of the experiment has these parameters")

// ErrOneMachine reports that an experiment runs on one machine only.
var ErrOneMachine = errors.New("the experiment runs on one machine only")

// Roles returns the roles of the experiment, which --hosts distributes. The error is ErrOneMachine if its scenario does
// not support that.
func (e *Experiment) Roles() ([]string, error) {
	remote, ok := e.scenario.(Remote)
	if !ok {
		return nil, fmt.Errorf("%s: %w", e.Name, ErrOneMachine)
	}
	var roles []string
	for _, c := range e.cells {
		for _, role := range remote.Roles(c.Parameters) {
			if !slices.Contains(roles, role) {
				roles = append(roles, role)
			}
		}
	}
	return roles, nil
}

// setupTime is the time limit of an iteration in addition to measuring: for preparing frames, starting programs and
// waiting for their connections.
const setupTime = 4 * time.Minute

// Run runs an experiment: all cells once in an order by chance, then all cells again, so that slow changes of the
// machine affect all cells alike. Each finished iteration is written to the journal. An interruption ends the run with
// the results so far; then the error is nil, and Result.Interrupted is set.
func (e *Experiment) Run(ctx context.Context, o Options) (*Result, error) {
	extent := e.Extent(o)
	r := &Result{
		Name: e.Name, Title: e.Title, Paper: e.Paper, Where: e.Where, About: e.About, Scenario: e.Scenario, Why: e.Why,
		Version: o.Version, Environment: o.Environment,
		Machine: lab.ThisMachine(), Begun: time.Now(), IterationSeconds: extent.Seconds, Iterations: extent.Iterations,
		Short: o.Short, Seed: o.Seed, Data: o.Data, Source: o.Source,
		Parameters: e.Parameters, Quantities: e.scenario.Quantities(), Experiment: e,
	}
	if err := r.selectCells(o.Only, o.Cells); err != nil {
		return nil, err
	}
	if o.Hosts != nil {
		r.Hosts = o.Hosts.Describe()
		if _, err := e.Roles(); err != nil {
			return nil, err
		}
	}
	j, err := e.begin(r, o)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(e.iterate(ctx, r, j, extent, o), j.close()); err != nil {
		return nil, err
	}
	r.Seconds = j.seconds()
	r.complete()
	return r, nil
}

// Extent returns the extent of each cell of a run.
func (e *Experiment) Extent(o Options) Extent {
	extent := Extent{e.Iterations, e.Seconds}
	if o.Short {
		extent = e.Short
	}
	if o.Iterations > 0 {
		extent.Iterations = o.Iterations
	}
	if o.Duration > 0 {
		extent.Seconds = o.Duration.Seconds()
	}
	return extent
}

// Time returns the expected time of a run, if each iteration takes some time besides measuring.
func (e *Experiment) Time(o Options, overhead time.Duration) time.Duration {
	extent, cells := e.Extent(o), 0
	for _, c := range e.cells {
		if c.selected(o.Short, o.Only, o.Cells) {
			cells++
		}
	}
	return time.Duration(cells*extent.Iterations) * (extent.Duration() + overhead)
}

// selected reports whether a run has the cell.
func (c *Cell) selected(short bool, only Parameters, names []string) bool {
	return (c.Short || !short) && c.Parameters.Match(only) && (names == nil || slices.Contains(names, c.Name()))
}

// selectCells adds the cells of a run, without iterations. The error is ErrNoCells if no cell is selected.
func (r *Result) selectCells(only Parameters, names []string) error {
	r.Cells = nil
	for _, c := range r.Experiment.cells {
		if c.selected(r.Short, only, names) {
			r.Cells = append(r.Cells, CellResult{Name: c.Name(), Parameters: c.Parameters,
				Iterations: []IterationResult{}, Cell: c})
		}
	}
	if len(r.Cells) == 0 {
		return fmt.Errorf("%s: %w: %s", r.Name, ErrNoCells, only)
	}
	return nil
}

// order returns the order of n cells in an iteration, which depends only on the seed: an order by chance prevents that
// slow changes of the machine favour a cell, or that a cell always follows the same other one.
func order(n int, seed uint64) []int { return rand.New(rand.NewPCG(seed, 0)).Perm(n) }

func (e *Experiment) iterate(ctx context.Context, r *Result, j *journal, extent Extent, o Options) error {
	for iteration := range extent.Iterations {
		for _, i := range order(len(r.Cells), o.Seed+uint64(iteration)) {
			c := &r.Cells[i]
			if len(c.Iterations) > iteration {
				// An earlier part of the run has done the iteration.
				continue
			}
			if ctx.Err() != nil {
				r.Interrupted = true
				return nil
			}
			o.Progress.Say("%s: %s, iteration %d of %d", e.Name, c.Name, iteration+1, extent.Iterations)
			result, err := e.once(ctx, c.Cell, iteration, extent.Duration(), o)
			if err != nil {
				return err
			}
			if ctx.Err() != nil {
				r.Interrupted = true
				return nil
			}
			c.Iterations = append(c.Iterations, result)
			clocks := o.Hosts.Clocks()
			r.Hosts.SetClocks(clocks)
			if err := j.add(c.Name, result, clocks); err != nil {
				return fmt.Errorf("%s: %w: %w", e.Name, ErrJournal, err)
			}
			o.Progress.Say("%s: %s: %s", e.Name, c.Name, result.line())
		}
	}
	return nil
}

// once runs one iteration of a cell. The error is a failure of the runner, not a failure of the scenario.
func (e *Experiment) once(ctx context.Context, c Cell, iteration int, duration time.Duration,
	o Options) (IterationResult, error) {
	s := Settings{
		Duration: duration, Iteration: iteration, Seed: o.Seed + uint64(iteration), Data: o.Data, Programs: o.Programs,
		Progress: o.Progress, Hosts: o.Hosts, Source: o.Source,
		Folder: filepath.Join(o.Folder, "raw", c.folder(), fmt.Sprint(iteration)), Shared: o.Shared,
	}
	if err := os.RemoveAll(s.Folder); err != nil {
		return IterationResult{}, err
	}
	for _, folder := range []string{s.Folder, s.Shared} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return IterationResult{}, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, duration+setupTime)
	defer cancel()
	result := IterationResult{Iteration: iteration, Seed: s.Seed, LoadBefore: lab.LoadAverage()}
	begun := time.Now()
	before, unknown := lab.ReadMachineTime()
	outcome, err := e.scenario.Run(ctx, c, s)
	result.Seconds = time.Since(begun).Seconds()
	result.Outcome = e.judged(outcome, err)
	if after, err := lab.ReadMachineTime(); unknown == nil && err == nil {
		result.Stolen = after.StolenSince(before)
		result.blame(result.Stolen)
	}
	return result, tidy(s.Folder, !o.NoRaw)
}

// judged converts an error to a failed outcome, and also figures that the scenario does not list, and figures and
// points of series that are not numbers.
func (e *Experiment) judged(outcome *Outcome, err error) *Outcome {
	if err == nil && outcome == nil {
		err = errors.New("the scenario returned no outcome")
	}
	if outcome == nil {
		outcome = NewOutcome()
	}
	if err == nil {
		for _, f := range outcome.Figures {
			if _, known := e.Quantity(f.Name); !known {
				err = errors.Join(err, fmt.Errorf("figure %q: the scenario does not list it", f.Name))
			} else if !finite(f.Value) || !finite(f.Samples...) {
				err = errors.Join(err, fmt.Errorf("figure %q is not a number", f.Name))
			}
		}
		for _, line := range outcome.Lines {
			for _, point := range line.Points {
				if !finite(point[:]...) {
					err = errors.Join(err, fmt.Errorf("series %q has the point %v, expected numbers", line.Name, point))
					break
				}
			}
		}
	}
	if err != nil {
		return &Outcome{Validity: Failed, Reason: err.Error(), Figures: []Figure{}, Notes: outcome.Notes}
	}
	if outcome.Figures == nil {
		outcome.Figures = []Figure{}
	}
	return outcome
}

// finite reports whether all values are numbers.
func finite(values ...float64) bool {
	return !slices.ContainsFunc(values, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
}

// line describes the outcome of an iteration, for progress.
func (i *IterationResult) line() string {
	text := fmt.Sprintf("%s (%.0f s, load %.1f)", i.Validity, i.Seconds, i.LoadBefore)
	if remark := i.Remark(); remark != "" {
		text += ": " + remark
	}
	return text
}

// complete computes figures and comparisons from the iterations.
func (r *Result) complete() {
	for i := range r.Cells {
		c := &r.Cells[i]
		c.derive(r.Experiment)
		c.summarise(r.Experiment)
		for _, iteration := range c.Iterations {
			for _, note := range iteration.Notes {
				if !slices.Contains(r.Notes, note) {
					r.Notes = append(r.Notes, note)
				}
			}
		}
	}
	r.compare()
}
