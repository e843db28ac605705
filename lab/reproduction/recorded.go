package reproduction

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/experiment"
)

// Errors of recorded runs.
var (
	errUnrecorded = errors.New("--recorded: expected the journal of at least one experiment with the extent of the " +
		"tier")
	errFrom = errors.New("--from: expected folders of earlier runs, without the folder --out")
)

// recorded are recorded runs in the order of their beginnings, by the library's values of the papers.
type recorded []*experiment.Result

// readRecorded reads the journals in the folders of experiments in some folders. Each of the folders must have a
// journal if it is required.
func readRecorded(folders []string, l *experiment.Library, required bool) (recorded, error) {
	var runs recorded
	for _, folder := range folders {
		journals, err := filepath.Glob(filepath.Join(folder, "*", experiment.JournalFile))
		if err != nil {
			return nil, err
		}
		if len(journals) == 0 && required {
			return nil, fmt.Errorf("%w: %s has no journal", errFrom, folder)
		}
		for _, journal := range journals {
			r, err := l.Reopen(filepath.Dir(journal))
			if err == nil {
				err = l.Revise(r)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", filepath.Dir(journal), err)
			}
			runs = append(runs, r)
		}
	}
	slices.SortStableFunc(runs, func(a, b *experiment.Result) int { return a.Begun.Compare(b.Begun) })
	return runs, nil
}

// of returns the runs of a plan, with only its cells.
func (r recorded) of(p *Plan, seed uint64) (runs recorded) {
	for _, run := range r {
		if taken := p.take(run, seed); taken != nil {
			runs = append(runs, taken)
		}
	}
	return runs
}

// report says which runs no plan uses.
func (r recorded) report(plans []Plan, seed uint64, progress lab.Progress) {
	for _, run := range r {
		if !slices.ContainsFunc(plans, func(p Plan) bool { return p.take(run, seed) != nil }) {
			progress.Say("%s of %s is not used: the tier has no cell of it with %d iterations of %g s and seed %d",
				run.Name, run.Begun.UTC().Format("2006-01-02 15:04"), run.Iterations, run.IterationSeconds, run.Seed)
		}
	}
}

// earlier reads the runs in the folders --from.
func (r *reproducing) earlier(l *experiment.Library) (recorded, error) {
	for _, folder := range r.from {
		if same, err := sameFolder(folder, r.out); same || err != nil {
			return nil, fmt.Errorf("%w: %s", errors.Join(errFrom, err), folder)
		}
	}
	return readRecorded(r.from, l, true)
}

// sameFolder reports whether two paths are of the same folder. The second one need not exist.
func sameFolder(a, b string) (bool, error) {
	first, err := os.Stat(a)
	if err != nil {
		return false, err
	}
	second, err := os.Stat(b)
	return err == nil && os.SameFile(first, second), nil
}
