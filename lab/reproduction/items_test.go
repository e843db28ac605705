package reproduction

import (
	"errors"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/experiment/library"
)

func newLibrary(t *testing.T) *experiment.Library {
	t.Helper()
	l, err := library.New()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// papers is the number of tables and figures with results of each paper.
var papers = map[string]int{"000": 10, "001": 6, "002": 9, "003": 4, "004": 5}

// TestItems checks that every table and figure with results is an item, and that each item has values.
func TestItems(t *testing.T) {
	l := newLibrary(t)
	items, err := Items(l)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for i := range items {
		count[items[i].Paper]++
		c, err := Compare(items[i], l, nil)
		if err != nil || c.Status != NotRun {
			t.Errorf("paper %s, %s: expected an item that is not run, got %v, %v", c.Paper, c.Place, c.Status, err)
		}
		t.Logf("paper %s, %s: %d values", c.Paper, c.Place, len(c.Rows))
	}
	for paper, want := range papers {
		if count[paper] != want {
			t.Errorf("paper %s: expected %d items, got %d", paper, want, count[paper])
		}
	}
}

func TestInvalidItems(t *testing.T) {
	l := newLibrary(t)
	const head = `- {paper: "001", place: table 1, shows: x, `
	for want, text := range map[string]string{
		"each place once": head + `evidence: [{run: sfu-table1}]}` + "\n" + head +
			`evidence: [{run: sfu-table1}]}`,
		"items of a paper together": `- {paper: "002", place: figure 2, shows: x, evidence: [{run: draco-levels}]}` +
			"\n" + head + `evidence: [{run: sfu-table1}]}`,
		"expected evidence":      head + `plots: [{run: sfu-table1, name: latency}]}`,
		"unknown experiment":     head + `evidence: [{run: sfu-table9}]}`,
		`is of paper "000"`:      head + `evidence: [{run: quality}]}`,
		"has no value":           head + `evidence: [{run: sfu-table1, cells: {level: 8}}]}`,
		"has no plot":            head + `evidence: [{run: sfu-table1}], plots: [{run: sfu-table1, name: none}]}`,
		"has no evidence":        head + `evidence: [{run: sfu-table1}], plots: [{run: sfu-fig3, name: stages}]}`,
		"field colour not found": head + `colour: red}`,
	} {
		if _, err := parseItems([]byte(text), l); !errors.Is(err, ErrItems) ||
			want != "unknown experiment" && !strings.Contains(err.Error(), want) {
			t.Errorf("expected %q, got %v", want, err)
		}
	}
}

// TestCells compares cells that were measured without the value, that failed, and that did not run.
func TestCells(t *testing.T) {
	iterations := func(validity experiment.Validity) (list []experiment.IterationResult) {
		for range 5 {
			list = append(list, experiment.IterationResult{Outcome: &experiment.Outcome{Validity: validity}})
		}
		return list
	}
	result := &experiment.Result{Cells: []experiment.CellResult{
		{Name: "flows=1", Worth: experiment.Valid, Iterations: iterations(experiment.Valid)},
		{Name: "flows=2", Worth: experiment.Failed, Iterations: iterations(experiment.Failed)},
	}}
	for name, want := range map[string]struct {
		status Status
		text   string
	}{
		"flows=1": {Deviates, "in none of 5 iterations"}, "flows=2": {NotRun, "– (failed)"}, "flows=3": {NotRun, "–"},
	} {
		row := Row{Cell: name, Paper: 10, figure: "estimate_90"}
		if row.compare(result); row.Status != want.status || ourValue(row) != want.text {
			t.Errorf("%s: expected %s, %s, got %s, %s", name, want.status, want.text, row.Status, ourValue(row))
		}
	}
}

func TestVerdict(t *testing.T) {
	most, least := experiment.Bound{AtMost: true}, experiment.Bound{AtLeast: true}
	for name, test := range map[string]struct {
		row  Row
		ours float64
		want Status
	}{
		"intervals overlap":         {Row{Paper: 10, PlusMinus: 3, Low: 12, High: 18}, 15, Reproduced},
		"intervals do not overlap":  {Row{Paper: 10, PlusMinus: 1, Low: 14, High: 18}, 16, Deviates},
		"a wide interval":           {Row{Paper: 10, PlusMinus: 1, Low: 5, High: 95}, 50, Inconclusive},
		"within a quarter":          {Row{Paper: 10, Low: 12, High: 12}, 12, Reproduced},
		"within, a wide interval":   {Row{Paper: 10, Low: -20, High: 44}, 12, Inconclusive},
		"below a bound":             {Row{Paper: 50, Bound: most, Low: 1, High: 2}, 1.5, Reproduced},
		"above a bound":             {Row{Paper: 50, Bound: most, Low: 55, High: 65}, 60, Deviates},
		"on both sides of a bound":  {Row{Paper: 50, Bound: most, Low: 40, High: 80}, 60, Inconclusive},
		"above a lower bound":       {Row{Paper: 50, Bound: least, Low: 55, High: 65}, 60, Reproduced},
		"below a lower bound":       {Row{Paper: 50, Bound: least, Low: 1, High: 2}, 1.5, Deviates},
		"around a lower bound":      {Row{Paper: 50, Bound: least, Low: 40, High: 80}, 60, Inconclusive},
		"a share without losses":    {Row{Paper: 97, Unit: "%", Low: 100, High: 100}, 100, Deviates},
		"a share with like losses":  {Row{Paper: 97, Unit: "%", Low: 97.3, High: 97.7}, 97.5, Reproduced},
		"a relation of 97 %":        {Row{Paper: 97, Unit: "%", Low: 90, High: 92, relation: "x"}, 91, Reproduced},
		"0 and an interval with 0":  {Row{Paper: 0, Low: -1, High: 1.5}, 0.3, Inconclusive},
		"0 and 0":                   {Row{Paper: 0}, 0, Reproduced},
		"in some iterations":        {Row{Paper: 10, Low: 9, High: 12, N: 4, Of: 5}, 10.5, Inconclusive},
		"in some, and another one":  {Row{Paper: 10, Low: 19, High: 21, N: 4, Of: 5}, 20, Deviates},
		"no finite interval":        {Row{Paper: 7, Low: 90, High: 90, N: 5, Unbounded: true}, 90, Inconclusive},
		"0 and an interval above 0": {Row{Paper: 0, Low: 1, High: 2}, 1.5, Deviates},
	} {
		test.row.Ours = &test.ours
		if got := test.row.verdict(); got != test.want {
			t.Errorf("%s: expected %s, got %s", name, test.want, got)
		}
	}
}
