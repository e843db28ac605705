package claims

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/experiment/report"
	"github.com/volsfu/volsfu/test/claim"
)

// Checks returns the checks of experiments, in the order of their numbers.
func Checks(o Options, progress lab.Progress) []lab.Check {
	return []lab.Check{&everything{o, progress}, &interactive{cells{Options: o, progress: progress}}}
}

// everything runs all experiments for a short time.
type everything struct {
	Options
	progress lab.Progress
}

// allMinutes is the time limit of all short experiments together on a machine with two cores.
const allMinutes = 25

// Name implements lab.Check.
func (c *everything) Name() string { return "vollab run all --short: every report, every iteration" }

// Run implements lab.Check.
func (c *everything) Run(ctx context.Context) (lines []claim.Line, err error) {
	folder := c.Folder
	if folder == "" {
		if folder, err = os.MkdirTemp("", "vollab-check-"); err != nil {
			return nil, err
		}
		defer func() { _ = os.RemoveAll(folder) }()
	}
	begun := time.Now()
	var results []*experiment.Result
	var unwritten error
	for _, e := range c.Library.Experiments() {
		r, err := e.Run(ctx, c.options(filepath.Join(folder, e.Name), experiment.Options{Short: true}, c.progress))
		if errors.Is(err, experiment.ErrNoCells) {
			continue // no short cells
		}
		if err != nil {
			return lines, err
		}
		if err := ctx.Err(); err != nil {
			return lines, err
		}
		unwritten = errors.Join(unwritten, report.Write(r, filepath.Join(folder, e.Name)))
		results = append(results, r)
		lines = append(lines, reported(r, filepath.Join(folder, e.Name))...)
	}
	unwritten = errors.Join(unwritten, report.WriteIndex(folder, results))
	return append(lines, claim.AtMost("all experiments", time.Since(begun).Minutes(), "min", allMinutes)), unwritten
}

// reported returns the lines of one experiment: the counts of its iterations, and whether its report has every plot.
func reported(r *experiment.Result, folder string) []claim.Line {
	counts := r.Counts()
	drawn, wanted := 0, 0
	for _, name := range r.PlotNames() {
		wanted++
		if _, err := os.Stat(filepath.Join(folder, name+".svg")); err == nil {
			drawn++
		}
	}
	lines := []claim.Line{
		claim.AtMost(fmt.Sprintf("%s: failed (valid %d, cpu-bound %d, skipped %d)", r.Name, counts[experiment.Valid],
			counts[experiment.CPUBound], counts[experiment.Skipped]),
			float64(counts[experiment.Failed]), "iterations", 0),
		claim.Information(r.Name+": invalid, the measurement disturbed", float64(counts[experiment.Invalid]),
			"iterations"),
	}
	if counts[experiment.Skipped] == r.Iterations*len(r.Cells) {
		return append(lines, claim.Skip(r.Name+": plots", r.Cells[0].Iterations[0].Reason))
	}
	return append(lines, claim.AtLeast(r.Name+": plots", float64(drawn), "drawn", float64(wanted)))
}
