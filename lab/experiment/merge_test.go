package experiment_test

import (
	"slices"
	"testing"

	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/experiment/experimenttest"
)

// TestMerge merges a run of the cells with west wind and a later run of two cells, of which the first run has one.
func TestMerge(t *testing.T) {
	e := experimenttest.Parse(t, experimenttest.Run, experimenttest.File)
	first := experimenttest.Result(t, e, experiment.Options{Only: experiment.Parameters{{Name: "wind", Value: "west"}}})
	later := experimenttest.Result(t, e, experiment.Options{Iterations: 2,
		Cells: []string{"wind=west height=20", "wind=east height=30"}})
	for name, merged := range map[string]*experiment.Result{
		"in order": experiment.Merge(first, later), "in reverse": experiment.Merge(later, first),
	} {
		var names []string
		for _, c := range merged.Cells {
			names = append(names, c.Name)
		}
		want := []string{"wind=west height=10", "wind=west height=20", "wind=east height=30"}
		if !slices.Equal(names, want) {
			t.Fatalf("%s: expected the cells %v, got %v", name, want, names)
		}
		if n := []int{len(merged.Cells[0].Iterations), len(merged.Cells[1].Iterations)}; !slices.Equal(n, []int{3, 2}) {
			t.Errorf("%s: expected the later run's two iterations of a cell in both, got %v", name, n)
		}
		// The iterations of height 10 have the means 10, 11 and 12, those of height 20 have 20 and 21.
		c := merged.Comparisons[0]
		if len(merged.Comparisons) != 2 || c.Value == nil || !near(*c.Value, 20.5/11, 1e-9) || c.Count != 2 {
			t.Errorf("%s: expected the relation of two runs, got %+v", name, merged.Comparisons)
		}
		if len(merged.Notes) != 1 {
			t.Errorf("%s: expected a note, got %q", name, merged.Notes)
		}
	}
	if len(first.Cells) != 2 || len(later.Cells) != 2 {
		t.Error("the merged runs have changed")
	}
}

// TestFinished checks cells of each validity, and of an interrupted run.
func TestFinished(t *testing.T) {
	fates := experimenttest.Result(t, experimenttest.Parse(t, experimenttest.Run, experimenttest.Fates),
		experiment.Options{})
	for fate, want := range map[string]bool{
		"good": true, "slow": true, "late": false, "sinks": false, "skipped": false, "unknown": false,
	} {
		if fates.Finished("fate="+fate) != want {
			t.Errorf("%s: expected %v", fate, want)
		}
	}
	j := newJournaled(t)
	interrupted, err := j.begin(t, 6, experiment.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range interrupted.Cells {
		if interrupted.Finished(c.Name) {
			t.Errorf("%s has %d of 3 iterations", c.Name, len(c.Iterations))
		}
	}
}
