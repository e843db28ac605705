package experiment_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/experiment/experimenttest"
)

// TestDifferences compares two runs of which one has a longer latency at west: there the heights are 10 and 20, and the
// iterations have the deviation 1.
func TestDifferences(t *testing.T) {
	before := experimenttest.Result(t, experimenttest.Parse(t, experimenttest.Run, experimenttest.File),
		experiment.Options{})
	changed := strings.Replace(experimenttest.File, "wind: west, height: [10, 20]", "wind: west, height: [10, 26]", 1)
	changed = strings.ReplaceAll(changed, "wind: west, height: 20", "wind: west, height: 26")
	after := experimenttest.Result(t, experimenttest.Parse(t, experimenttest.Run, changed), experiment.Options{})
	// The two runs share a name of a cell, whose figures change.
	before.Cells[1].Name = after.Cells[1].Name
	differences, err := experiment.Differences(before, after)
	if err != nil {
		t.Fatal(err)
	}
	if len(differences) != 4*4 {
		t.Fatalf("expected the 4 figures of 4 cells, got %d", len(differences))
	}
	for _, d := range differences {
		// Three iterations with the deviation 1: t = 6 / √(2/3) = 7.3, and p = 0.002, times 16. The other figures are
		// constant in each run.
		if want := d.Cell == before.Cells[1].Name; d.Significant() != want {
			t.Errorf("%s, %s: %g and %g: expected %v, got p = %g", d.Cell, d.Quantity.Name, d.A.Mean, d.B.Mean, want,
				d.P)
		}
	}
	before.Name = "other"
	if _, err := experiment.Differences(before, after); !errors.Is(err, experiment.ErrOtherExperiment) {
		t.Errorf("expected an error, got %v", err)
	}
}
