package reproduction

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/experiment/experimenttest"
)

// planned returns the items and their plans in a tier.
func planned(t *testing.T, tier Tier) ([]Item, []Plan, *experiment.Library) {
	t.Helper()
	l := newLibrary(t)
	items, err := Items(l)
	if err != nil {
		t.Fatal(err)
	}
	plans, err := PlanOf(items, l, tier)
	if err != nil {
		t.Fatal(err)
	}
	return items, plans, l
}

// TestPlans checks the times of tiers tour and claims, and that their runs have folders of their own.
func TestPlans(t *testing.T) {
	for tier, most := range map[Tier]time.Duration{Tour: 30 * time.Minute, Claims: 4 * time.Hour} {
		_, plans, _ := planned(t, tier)
		var sum time.Duration
		var folders []string
		for i := range plans {
			p := &plans[i]
			sum += p.Time()
			if p.Time() == 0 || slices.Contains(folders, p.Folder) {
				t.Errorf("tier %s, %s: expected a folder with cells, got %v", tier, p.Folder, p.Time())
			}
			folders = append(folders, p.Folder)
		}
		t.Logf("tier %s: %d runs, %v", tier, len(plans), sum)
		if sum > most {
			t.Errorf("tier %s: expected at most %v, got %v", tier, most, sum)
		}
	}
}

// TestClaims checks that tier claims measures each value of each item in several iterations, and each cell once.
func TestClaims(t *testing.T) {
	items, plans, l := planned(t, Claims)
	// cells counts the plans of each cell, by name of the experiment and of the cell.
	cells := make(map[[2]string]int)
	for i := range plans {
		p := &plans[i]
		if n := p.Options.Iterations; n < leastIterations {
			t.Errorf("%s: expected at least %d iterations, got %d", p.Folder, leastIterations, n)
		}
		for _, name := range p.cells() {
			cells[[2]string{p.Experiment.Name, name}]++
		}
	}
	need := func(item *Item, run, cell string) {
		if n := cells[[2]string{run, cell}]; n != 1 {
			t.Errorf("paper %s, %s: %s, cell %s is in %d plans, expected one", item.Paper, item.Place, run, cell, n)
		}
	}
	for i := range items {
		c, err := Compare(items[i], l, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range c.Rows {
			if row.relation == "" {
				need(&items[i], row.Run, row.Cell)
				continue
			}
			e, err := l.Find(row.Run)
			if err != nil {
				t.Fatal(err)
			}
			at := slices.IndexFunc(e.Comparisons, func(c experiment.Comparison) bool { return c.Name == row.relation })
			for _, cell := range e.Cells() {
				if cell.Parameters.Match(e.Comparisons[at].Of) || cell.Parameters.Match(e.Comparisons[at].To) {
					need(&items[i], row.Run, cell.Name())
				}
			}
		}
	}
	t.Logf("%d items, %d runs, %d cells", len(items), len(plans), len(cells))
}

func TestInvalidClaims(t *testing.T) {
	l := newLibrary(t)
	for want, text := range map[string]string{
		"no such experiment":     `[{run: sfu-table9, iterations: 5, seconds: 20}]`,
		"has no cell with tiles": `[{run: sfu-table2, cells: {tiles: 7}, iterations: 5, seconds: 20}]`,
		"at least 3 iterations":  `[{run: sfu-table2, iterations: 2, seconds: 20}]`,
		"times above 0":          `[{run: sfu-table2, iterations: 5}]`,
		"field minutes":          `[{run: sfu-table2, iterations: 5, minutes: 1}]`,
	} {
		if _, err := parseClaims([]byte(text), l); !errors.Is(err, ErrClaims) || !strings.Contains(err.Error(), want) {
			t.Errorf("expected %q, got %v", want, err)
		}
	}
}

// waves returns the plan of all four cells of an experiment for tests, and the experiment.
func waves(t *testing.T) (*Plan, *experiment.Experiment) {
	e := experimenttest.Parse(t, experimenttest.Run, experimenttest.File)
	return &Plan{Experiment: e, Folder: e.Name, spent: overhead}, e
}

// TestWithout leaves out the cells that an earlier run has finished.
func TestWithout(t *testing.T) {
	plan, e := waves(t)
	west := experiment.Parameters{{Name: "wind", Value: "west"}}
	for name, test := range map[string]struct {
		run  experiment.Options
		want int
	}{
		"the cells with west wind":      {experiment.Options{Seed: 1, Only: west}, 2},
		"the cells of another seed":     {experiment.Options{Seed: 2, Only: west}, 0},
		"shorter iterations":            {experiment.Options{Seed: 1, Only: west, Duration: time.Second}, 0},
		"fewer iterations":              {experiment.Options{Seed: 1, Only: west, Iterations: 2}, 0},
		"the cells of a short run":      {experiment.Options{Seed: 1, Short: true}, 0},
		"all cells, by another version": {experiment.Options{Seed: 1}, 4},
	} {
		earlier := recorded{experimenttest.Result(t, e, test.run)}
		rest := plan.without(earlier.of(plan, 1))
		if rest.Recorded != test.want || len(rest.cells()) != 4-test.want {
			t.Errorf("%s: expected %d recorded cells, got %d, and %v are left", name, test.want, rest.Recorded,
				rest.cells())
		}
		if (rest.Time() == 0) != (test.want == 4) {
			t.Errorf("%s: the rest takes %v", name, rest.Time())
		}
	}
	if len(plan.cells()) != 4 || plan.Options.Cells != nil {
		t.Error("the plan has changed")
	}
}

// TestTake takes the cells of a plan from a run of all cells, with the relations of those cells only.
func TestTake(t *testing.T) {
	plan, e := waves(t)
	all := experimenttest.Result(t, e, experiment.Options{Seed: 1})
	plan.Options.Cells = []string{"wind=west height=20", "wind=west height=10"}
	taken := plan.take(all, 1)
	if taken == nil || len(taken.Cells) != 2 || len(all.Cells) != 4 {
		t.Fatalf("expected two of four cells, got %+v", taken)
	}
	if c := taken.Comparisons; len(c) != 2 || c[0].Value == nil || c[1].Value != nil {
		t.Errorf("expected the relation of two cells and none of others, got %+v", c)
	}
	if plan.Options.Cells = []string{"wind=north"}; plan.take(all, 1) != nil {
		t.Error("expected no run without a cell of the plan")
	}
}

func TestPrintPlan(t *testing.T) {
	plan, e := waves(t)
	west := experiment.Parameters{{Name: "wind", Value: "west"}}
	earlier := recorded{experimenttest.Result(t, e, experiment.Options{Seed: 1, Only: west})}
	var b bytes.Buffer
	if err := printPlan([]Plan{plan.without(earlier.of(plan, 1))}, &b); err != nil {
		t.Fatal(err)
	}
	// Two cells of three iterations of 2 s and 4.2 s besides.
	if got := row(b.String(), "waves"); got != "waves 3 × 2 2 2 37s" {
		t.Errorf("expected two recorded cells and 37 s of two others, got\n%s", b.String())
	}
}
