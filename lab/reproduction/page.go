package reproduction

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/volsfu/volsfu/lab/environment"
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/experiment/report"
)

// Reproduction is the comparison with one paper, the content of its page.
type Reproduction struct {
	Paper string     `json:"paper"`
	Title string     `json:"title"`
	Tier  Tier       `json:"tier"`
	Items []Compared `json:"items"`
	// Runs are the experiments with results, in the order of the items.
	Runs []Run `json:"runs"`
}

// Run describes the run of an experiment.
type Run struct {
	Name  string    `json:"name"`
	Begun time.Time `json:"begun"`
	// Iterations and Seconds are the extent of each cell.
	Iterations int     `json:"iterations"`
	Seconds    float64 `json:"seconds"`
	// Cells is the number of cells that count.
	Cells int `json:"cells"`
	// Interrupted is set if the run ended before all iterations.
	Interrupted bool   `json:"interrupted,omitempty"`
	Version     string `json:"version"`
	// Valid, CPUBound, Invalid, Failed and Skipped count iterations.
	Valid       int                      `json:"valid"`
	CPUBound    int                      `json:"cpu_bound"`
	Invalid     int                      `json:"invalid"`
	Failed      int                      `json:"failed"`
	Skipped     int                      `json:"skipped"`
	Environment *environment.Environment `json:"environment,omitempty"`
}

func describe(r *experiment.Result) Run {
	counts := r.Counts()
	return Run{Name: r.Name, Begun: r.Begun.UTC().Truncate(time.Second), Iterations: r.Iterations,
		Seconds: r.IterationSeconds, Cells: len(r.Cells), Interrupted: r.Interrupted, Version: r.Version,
		Valid: counts[experiment.Valid], CPUBound: counts[experiment.CPUBound], Invalid: counts[experiment.Invalid],
		Failed: counts[experiment.Failed], Skipped: counts[experiment.Skipped], Environment: r.Environment}
}

// Counts returns the number of items of each status.
func (r *Reproduction) Counts() map[Status]int {
	counts := make(map[Status]int)
	for i := range r.Items {
		counts[r.Items[i].Status]++
	}
	return counts
}

//go:embed page.md.tmpl
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"paperValue": paperValue, "ourValue": ourValue, "reasons": reasons, "cell": cell, "tally": tally,
	"measured": measured, "extent": extentText, "environments": environments,
	"join": func(names []string) string { return strings.Join(names, ", ") },
}).Parse(pageText))

// Page returns the page in Markdown. The page follows from the content alone.
func (r *Reproduction) Page() ([]byte, error) {
	var b bytes.Buffer
	err := page.Execute(&b, r)
	return b.Bytes(), err
}

func paperValue(r Row) string {
	text := r.Sign() + report.Number(r.Paper)
	if r.PlusMinus != 0 {
		text += " ± " + report.Number(r.PlusMinus)
	}
	return text
}

func ourValue(r Row) string {
	switch {
	case r.Of == 0 && r.Ours == nil:
		return "–"
	case r.Ours == nil && r.Status == NotRun:
		return fmt.Sprintf("– (%s)", r.Worth)
	case r.Ours == nil:
		return fmt.Sprintf("in none of %d iterations", r.Of)
	}
	text := report.Number(*r.Ours)
	switch {
	case r.Unbounded:
		text += " (no finite interval)"
	case r.Low != r.High:
		text += fmt.Sprintf(" (%s to %s)", report.Number(r.Low), report.Number(r.High))
	}
	text += fmt.Sprintf(", n = %d", r.N)
	if r.N < r.Of {
		text += fmt.Sprintf(" of %d", r.Of)
	}
	if r.Worth != experiment.Valid {
		text += ", " + string(r.Worth)
	}
	return text
}

// tally returns the number of values of each status.
func tally(c Compared) string {
	counts := make(map[Status]int)
	for i := range c.Rows {
		counts[c.Rows[i].Status]++
	}
	var texts []string
	for _, s := range []Status{Reproduced, Inconclusive, Deviates, NotRun} {
		if counts[s] > 0 {
			texts = append(texts, fmt.Sprintf("%d %s", counts[s], s))
		}
	}
	return strings.Join(texts, ", ")
}

// measured reports whether a cell of the item ran.
func measured(c Compared) bool {
	return slices.ContainsFunc(c.Rows, func(r Row) bool { return r.Ours != nil || r.Of > 0 })
}

// extentText describes the extent of cells, and that of tier full if the tier has another one.
func extentText(e Extent) string {
	text := fmt.Sprintf("%d iterations of %g s of each cell of `%s`", e.Iterations, e.Seconds, e.Run)
	if e.Iterations != e.FullIterations || e.Seconds != e.FullSeconds {
		text += fmt.Sprintf(" (tier `%s`: %d of %g s)", Full, e.FullIterations, e.FullSeconds)
	}
	return text
}

// surroundings is an environment and the runs in it.
type surroundings struct {
	Names []string
	Lines []environment.Line
}

// environments returns the different environments of runs.
func environments(runs []Run) (list []surroundings) {
	for _, r := range runs {
		lines := r.Environment.Lines()
		at := slices.IndexFunc(list, func(s surroundings) bool { return slices.Equal(s.Lines, lines) })
		if at < 0 {
			at = len(list)
			list = append(list, surroundings{Lines: lines})
		}
		list[at].Names = append(list[at].Names, fmt.Sprintf("`%s` of %s", r.Name, r.Begun.Format(minutes)))
	}
	return list
}

// minutes is the form of times on pages.
const minutes = "2006-01-02 15:04"

// reasons returns the reasons why the measured values of an item may differ from the paper's, each once.
func reasons(c Compared) []string {
	var all []string
	seen := make(map[string]bool)
	for _, r := range c.Rows {
		if r.Status != NotRun && r.Reason != "" && !seen[r.Reason] {
			seen[r.Reason] = true
			all = append(all, strings.Join(strings.Fields(r.Reason), " "))
		}
	}
	return all
}

// cell returns the parameters of a cell for a column of a table.
func cell(name string) string { return strings.ReplaceAll(name, " ", ", ") }

// Write writes the page, its content and its pictures to a folder: 001.md, 001.json and 001-*.svg for paper 001.
func (r *Reproduction) Write(folder string) error {
	text, err := r.Page()
	if err != nil {
		return err
	}
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	name := filepath.Join(folder, r.Paper)
	return errors.Join(os.WriteFile(name+".json", append(content, '\n'), 0o644), os.WriteFile(name+".md", text, 0o644),
		r.writePictures(folder))
}

// Errors of pages.
var (
	// ErrPage reports a page that does not follow from its content.
	ErrPage = errors.New("page was changed by hand")
	// ErrContent reports a content with other items or values of the paper than those of this program, or with statuses
	// that do not follow from its values.
	ErrContent = errors.New("the page's content is not that of this program; vollab reproduce --recorded writes it")
)

// read reads the content of a page.
func read(folder, paper string) (*Reproduction, error) {
	content, err := os.ReadFile(filepath.Join(folder, paper+".json"))
	if err != nil {
		return nil, err
	}
	r := &Reproduction{}
	if err := json.Unmarshal(content, r); err != nil {
		return nil, fmt.Errorf("paper %s: %w", paper, err)
	}
	return r, nil
}

// CheckContent checks that the content of a page has the items and the values of the paper of this program, and that
// its statuses follow from our values.
func CheckContent(folder, paper string, l *experiment.Library) error {
	r, err := read(folder, paper)
	if err != nil {
		return err
	}
	items, err := Items(l)
	if err != nil {
		return err
	}
	if items = ofPaper(items, paper); r.Title != titles[paper] || len(items) != len(r.Items) {
		return fmt.Errorf("paper %s: %w", paper, ErrContent)
	}
	for i := range items {
		want, err := Compare(items[i], l, nil)
		if err != nil {
			return err
		}
		if !r.Items[i].follows(&want) {
			return fmt.Errorf("paper %s, %s: %w", paper, items[i].Place, ErrContent)
		}
	}
	return nil
}

// follows reports whether an item has the texts and the values of the paper of the same item without results, and
// statuses that follow from our values.
func (c *Compared) follows(want *Compared) bool {
	if c.Place != want.Place || c.Shows != want.Shows || c.Conditions != want.Conditions ||
		!slices.Equal(c.Plots, want.Plots) || len(c.Rows) != len(want.Rows) {
		return false
	}
	for i, got := range c.Rows {
		row := want.Rows[i]
		if got.Run != row.Run || got.Cell != row.Cell || got.Name != row.Name || got.Paper != row.Paper ||
			got.PlusMinus != row.PlusMinus || got.Bound != row.Bound {
			return false
		}
		row.Unit, row.Ours, row.Low, row.High, row.N, row.Of = got.Unit, got.Ours, got.Low, got.High, got.N, got.Of
		row.Worth, row.Unbounded = got.Worth, got.Unbounded
		if row.judge(); row.Status != got.Status {
			return false
		}
	}
	return c.Status == c.status()
}

// CheckPage checks that a page and its pictures in a folder follow from the page's content.
func CheckPage(folder, paper string) error {
	r, err := read(folder, paper)
	if err != nil {
		return err
	}
	want, err := r.Page()
	if err != nil {
		return err
	}
	got, err := os.ReadFile(filepath.Join(folder, paper+".md"))
	if err != nil {
		return err
	}
	if bytes.Equal(got, want) {
		return r.checkPictures(folder)
	}
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	return fmt.Errorf("paper %s: %w: line %d", paper, ErrPage, 1+bytes.Count(got[:at], []byte("\n")))
}
