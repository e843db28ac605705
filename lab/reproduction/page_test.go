package reproduction

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/lab/environment"
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/experiment/experimenttest"
)

// documented is the folder of the pages of this project.
var documented = filepath.Join("..", "..", "docs", "reproduction")

// sample has items of several statuses.
func sample() *Reproduction {
	ours, other := 44.5, 150.0
	return &Reproduction{Paper: "001", Tier: Claims, Items: []Compared{
		{Item: Item{Paper: "001", Place: "table 1", Shows: "transports"}, Status: Deviates, Rows: []Row{
			{Run: "sfu-table1", Cell: "transport=reflector level=7", Name: "latency", Unit: "ms", Paper: 46.11,
				PlusMinus: 2.73, Ours: &ours, Low: 40, High: 49, N: 5, Worth: experiment.Valid, Status: Reproduced},
			{Run: "sfu-table1", Cell: "transport=reflector level=9", Name: "latency", Unit: "ms", Paper: 332.01,
				Ours: &other, Low: 150, High: 150, N: 1, Worth: experiment.CPUBound, Status: Deviates,
				Reason: "other  content\nand codec"},
			{Run: "sfu-table1", Name: "bound", Unit: "µs", Paper: 50, Bound: experiment.Bound{AtMost: true},
				Status: NotRun},
			{Run: "sfu-table1", Name: "lower bound", Unit: "µs", Paper: 30, Bound: experiment.Bound{AtLeast: true},
				Status: NotRun},
		}, Extents: []Extent{{"sfu-table1", 5, 20, 10, 60}, {"sfu-fig3", 10, 60, 10, 60}}, Pictures: []Picture{
			{File: "001-sfu-table1-latency.svg", Title: "Latency", Hash: hashOf([]byte("<svg/>")),
				svg: []byte("<svg/>")},
		}},
		{Item: Item{Paper: "001", Place: "table 2", Shows: "tiles", Conditions: "CPU is not compared."}, Status: NotRun,
			Rows: []Row{{Run: "sfu-table2", Name: "latency", Unit: "ms", Paper: 36, Status: NotRun}}},
	}, Runs: []Run{{Name: "sfu-table1", Begun: time.Date(2026, 11, 27, 15, 0, 0, 0, time.UTC), Cells: 2, Iterations: 5,
		Seconds: 20, Version: "v1", Valid: 9, CPUBound: 1,
		Environment: &environment.Environment{Processor: "EPYC", Cores: 2}}}}
}

func TestPage(t *testing.T) {
	page, err := sample().Page()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| table 1 | transports | deviates | 1 reproduced, 1 deviates, 2 not run |", "\nCPU is not compared.\n",
		"\nExtent: 5 iterations of 20 s of each cell of `sfu-table1` (tier `full`: 10 of 60 s); " +
			"10 iterations of 60 s of each cell of `sfu-fig3`.\n",
		"No value of this item was measured.",
		"| `sfu-table1` | transport=reflector, level=7 | latency | ms | 46.11 ± 2.73 | 44.50 (40.00 to 49.00)",
		"| 332.0 | 150.0, n = 1, cpu-bound | deviates |", "\nother content and codec\n",
		"| µs | < 50.00 | – | not run |", "| µs | > 30.00 | – | not run |",
		"\n![Latency](001-sfu-table1-latency.svg)\n",
		"| `sfu-table1` | 2026-11-27 15:00 | 2 | 5 × 20 | v1 | 9 | 1 | 0 | 0 | 0 |", "| environment | |",
		"| processor | EPYC 2 cores |",
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("expected %q in\n%s", want, page)
		}
	}
}

// TestHandTypedFigures changes a figure of a page by hand.
func TestHandTypedFigures(t *testing.T) {
	folder := t.TempDir()
	if err := sample().Write(folder); err != nil {
		t.Fatal(err)
	}
	if err := CheckPage(folder, "001"); err != nil {
		t.Errorf("expected a page as written, got %v", err)
	}
	name := filepath.Join(folder, "001.md")
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, bytes.Replace(page, []byte("44.50"), []byte("46.11"), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := CheckPage(folder, "001"); !errors.Is(err, ErrPage) {
		t.Errorf("expected an error, got %v", err)
	}
}

// TestPictures changes a picture by hand, and adds a picture that the page does not have.
func TestPictures(t *testing.T) {
	for _, file := range []string{"001-sfu-table1-latency.svg", "001-sfu-fig5-6-over-time.svg"} {
		folder := t.TempDir()
		if err := sample().Write(folder); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, file), []byte("<svg>46.11</svg>"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := CheckPage(folder, "001"); !errors.Is(err, ErrPage) {
			t.Errorf("%s: expected an error, got %v", file, err)
		}
	}
}

// TestDraw draws the plots of a run. A plot of cells that are not in the run has no picture.
func TestDraw(t *testing.T) {
	e := experimenttest.Parse(t, experimenttest.Run, experimenttest.File)
	east := experiment.Parameters{{Name: "wind", Value: "east"}}
	run := experimenttest.Result(t, e, experiment.Options{Only: east})
	item := Item{Paper: "042", Plots: []Plot{{Run: "waves", Name: "time"}, {Run: "waves", Name: "latency"}}}
	c := Compared{Item: item}
	if err := c.draw(map[string]*experiment.Result{"waves": run}); err != nil || len(c.Pictures) != 1 {
		t.Fatalf("expected one picture, got %+v, %v", c.Pictures, err)
	}
	p := c.Pictures[0]
	if p.File != "042-waves-latency.svg" || p.Title != "Latency & height" || !bytes.HasPrefix(p.svg, []byte("<svg")) {
		t.Errorf("expected the plot of the latency, got %+v", p)
	}
	c = Compared{Item: item}
	if err := c.draw(nil); err != nil || len(c.Pictures) > 0 {
		t.Errorf("expected no picture without a run, got %+v, %v", c.Pictures, err)
	}
}

// TestEnvironments prints the environment of each run if the runs of a page have several.
func TestEnvironments(t *testing.T) {
	r := sample()
	other := r.Runs[0]
	other.Name, other.Begun = "sfu-fig3", other.Begun.Add(time.Hour)
	r.Runs = append(r.Runs, other, other)
	r.Runs[2].Environment = &environment.Environment{Processor: "Xeon", Cores: 4}
	page, err := r.Page()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| environment | `sfu-table1` of 2026-11-27 15:00, `sfu-fig3` of 2026-11-27 16:00 |\n|---|---|\n" +
			"| processor | EPYC 2 cores |", "| environment | `sfu-fig3` of 2026-11-27 16:00 |\n|---|---|\n" +
			"| processor | Xeon 4 cores |",
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("expected %q in\n%s", want, page)
		}
	}
}

// TestContent changes a value of the paper and a status of a page's content.
func TestContent(t *testing.T) {
	l := newLibrary(t)
	items, err := Items(l)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Compared){
		"":                     func(*Compared) {},
		"a value of the paper": func(c *Compared) { c.Rows[0].Paper++ },
		"the status of a row":  func(c *Compared) { c.Rows[0].Status = Reproduced },
		"the status":           func(c *Compared) { c.Status = Reproduced },
		"a condition":          func(c *Compared) { c.Conditions = "none" },
		"our value": func(c *Compared) {
			value := c.Rows[0].Paper
			c.Rows[0].Ours, c.Rows[0].Worth = &value, experiment.Valid
		},
	} {
		r := Reproduction{Paper: "001", Title: titles["001"]}
		for _, item := range ofPaper(slices.Clone(items), "001") {
			c, err := Compare(item, l, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Items = append(r.Items, c)
		}
		change(&r.Items[0])
		folder := t.TempDir()
		if err := r.Write(folder); err != nil {
			t.Fatal(err)
		}
		if err := CheckContent(folder, "001", l); errors.Is(err, ErrContent) != (name != "") {
			t.Errorf("%s: unexpected error %v", name, err)
		}
	}
}

// TestDocumentedPages checks the pages of this project.
func TestDocumentedPages(t *testing.T) {
	l := newLibrary(t)
	pages, err := filepath.Glob(filepath.Join(documented, "*.md"))
	if err != nil || len(pages) != len(papers) {
		t.Fatalf("expected a page of each of %d papers, got %v, %v", len(papers), pages, err)
	}
	for _, page := range pages {
		paper := strings.TrimSuffix(filepath.Base(page), ".md")
		if err := errors.Join(CheckPage(documented, paper), CheckContent(documented, paper, l)); err != nil {
			t.Error(err)
		}
	}
}

// TestCompare compares results that stand for a run: a relation is reproduced, and the values of one cell are.
func TestCompare(t *testing.T) {
	l := newLibrary(t)
	e, err := l.Find("sfu-fig3")
	if err != nil {
		t.Fatal(err)
	}
	item := Item{Paper: "001", Place: "figure 3", Evidence: []Evidence{{Run: "sfu-fig3", Relations: true}}}
	result := &experiment.Result{Name: "sfu-fig3", Iterations: 5}
	for _, c := range e.Comparisons {
		if c.Paper != nil {
			value := *c.Paper * 1.1
			result.Comparisons = append(result.Comparisons, experiment.ComparisonResult{Name: c.Name, Value: &value,
				Worth: experiment.Valid})
		}
	}
	compare := func(want Status) Compared {
		c, err := Compare(item, l, Results{"sfu-fig3": {result}})
		if err != nil || c.Status != want || len(c.Rows) != len(result.Comparisons) {
			t.Errorf("expected %s and %d values, got %+v, %v", want, len(result.Comparisons), c, err)
		}
		return c
	}
	compare(Reproduced)
	far := *result.Comparisons[0].Value * 3
	result.Comparisons[0].Value, result.Comparisons[0].Why = &far, "another machine"
	if c := compare(Deviates); c.Rows[0].Reason != "another machine" {
		t.Errorf("expected the reason, got %+v", c.Rows[0])
	}
	result.Comparisons[1].Worth = experiment.Invalid
	compare(NotRun)
}
