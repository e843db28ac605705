package bench

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/hotpath"
	"github.com/volsfu/volsfu/test/claim"
)

func TestWriteTable(t *testing.T) {
	document := filepath.Join(t.TempDir(), "page.md")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(document, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	bench, claims := benchTable.begin+"\nold\n"+benchTable.end+"\n", claimTable.begin+"\nclaims\n"+claimTable.end+"\n"
	write("before\n" + claims + bench + "after\n")
	if err := writeTable(document, benchTable, "new\n"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(document)
	if want := "before\n" + claims + strings.Replace(bench, "old", "new", 1) + "after\n"; err != nil ||
		string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	write("before\n" + benchTable.begin + "\nold\n" + claims)
	if err := writeTable(document, benchTable, "new\n"); !errors.Is(err, errMarkers) ||
		!strings.Contains(err.Error(), benchTable.end) {
		t.Errorf("a document without an end marker: got %v, want errMarkers with the line", err)
	}
	if err := writeTable(document+"x", benchTable, "new\n"); err == nil {
		t.Error("a missing document was written")
	}
}

// TestDocumentedTables: the page that make bench writes has the markers of both tables.
func TestDocumentedTables(t *testing.T) {
	text, err := os.ReadFile("../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, between := range []markers{benchTable, claimTable} {
		_, rest, begun := strings.Cut(string(text), between.begin+"\n|")
		if _, _, ended := strings.Cut(rest, "|\n"+between.end+"\n"); !begun || !ended {
			t.Errorf("no table between %s and %s", between.begin, between.end)
		}
	}
}

func TestBenchRow(t *testing.T) {
	run := func(ours, theirs, ratio float64, valid bool) *hotpath.Result {
		segments := 10 * ours
		return &hotpath.Result{
			Figures: hotpath.Figures{CPU: ours, Residence: &hotpath.Quantiles{P50: 100 * ours, P99: 1000, P999: 2000},
				SegmentsPerSend: &segments, Allocations: ours / 100},
			Compare: &hotpath.Figures{CPU: theirs}, CPURatio: &ratio, Valid: valid,
		}
	}
	o := hotpath.Options{Load: hotpath.DefaultLoad(), Pacing: hotpath.PacingOff}
	for _, test := range []struct {
		name string
		runs hotpath.Runs
		row  string
	}{
		{
			"medians", hotpath.Runs{run(1, 12, 0.12, true), run(3, 10, 0.3, true), run(2, 11, 0.2, true)},
			"| ten | `vollab forward --compare pion --receivers 10 --mbps 50 --pacing off` | 2.00 | 11.00 | 0.20 | " +
				"- | 20.0 | 200 / 1000 / 2000 µs | 0.020 |\n",
		},
		{
			"with a run that is not valid",
			hotpath.Runs{run(2, 10, 0.2, true), run(2, 10, 0.2, false), run(2, 10, 0.2, true)},
			"| ten (1 of 3 runs not valid: losses, or a busy machine) | " +
				"`vollab forward --compare pion --receivers 10 --mbps 50 --pacing off` | 2.00 | 10.00 | 0.20 | " +
				"- | 20.0 | 200 / 1000 / 2000 µs | 0.020 |\n",
		},
	} {
		if got := benchRow("ten", o, test.runs); got != test.row {
			t.Errorf("%s: got\n%swant\n%s", test.name, got, test.row)
		}
	}
}

func TestClaimRows(t *testing.T) {
	report := lab.NewReport("hot-path", "test")
	report.Sections = []lab.Section{
		{Number: 1, Name: "cost", Lines: []claim.Line{
			claim.AtMost("of the other's", 0.2, "", 0.25), claim.Information("of this one", 2, "µs"),
			claim.Stated("per send", 14, ""), claim.Exactly("valid runs", 3, "", 3),
		}},
		{Number: 2, Name: "stay", Lines: []claim.Line{claim.AtMost("p50", 260, "µs", 200),
			claim.Skip("paced", "no pacer"), claim.Exactly("paced: valid runs", 1, "", 3)}, Error: "no server"},
	}
	want := `| claim (` + "`vollab check hot-path`" + `) | figure | target |
|---|---|---|
| 1. of the other's | 0.2 | ≤ 0.25 |
| 1. per send | 14 | stated |
| 2. p50 | 260 µs | ≤ 200: missed |
| 2. paced | - | skipped: no pacer |
| 2. paced: valid runs | 1 | = 3: missed |
| 2. stay | - | failed: no server |
`
	if got := claimRows(report); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
