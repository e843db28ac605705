package claims

import (
	"context"
	"path/filepath"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/test/claim"
)

// Options configure the checks.
type Options struct {
	Library *experiment.Library
	// Data is the folder of the test data, empty for the synthetic figure.
	Data string
	// Folder is the folder for the reports of the first check; empty selects a temporary folder.
	Folder string
	// Programs is the folder of the module's programs, empty for that of the running program.
	Programs string
	Version  string
}

// options completes the options of a run.
func (o *Options) options(folder string, run experiment.Options, progress lab.Progress) experiment.Options {
	run.Data, run.Programs, run.Version, run.Progress, run.Seed = o.Data, o.Programs, o.Version, progress, 1
	run.Folder, run.Shared = folder, filepath.Join(filepath.Dir(folder), "shared")
	return run
}

// cells runs cells of experiments.
type cells struct {
	Options
	progress lab.Progress
	// repeated counts the cells that were measured again because the measurement was disturbed.
	repeated int
}

// maxAgain is the largest number of repetitions of a cell whose iterations were all disturbed.
const maxAgain = 2

// run runs the selected cells of an experiment, with a report below the folder. A cell whose iterations were all
// disturbed is measured again.
func (c *cells) run(ctx context.Context, folder string, e *experiment.Experiment,
	run experiment.Options) (*experiment.Result, error) {
	measure := func(only experiment.Parameters) (*experiment.Result, error) {
		run.Only = only
		return e.Run(ctx, c.options(filepath.Join(folder, e.Name), run, c.progress))
	}
	r, err := measure(run.Only)
	if err != nil {
		return nil, err
	}
	for range maxAgain {
		for i := range r.Cells {
			if r.Cells[i].Worth != experiment.Invalid || failureOf(&r.Cells[i]) != "" {
				continue
			}
			c.progress.Say("%s: %s was disturbed and is measured again", e.Name, r.Cells[i].Name)
			repeated, err := measure(r.Cells[i].Parameters)
			if err != nil {
				return nil, err
			}
			r.Cells[i] = repeated.Cells[0]
			c.repeated++
		}
	}
	return r, ctx.Err()
}

// again returns the line of the cells that were measured again.
func (c *cells) again() claim.Line {
	return claim.Information("cells measured again because they were disturbed", float64(c.repeated), "")
}

func parameter(name string, value any) experiment.Parameter {
	return experiment.Parameter{Name: name, Value: value}
}
