package experiment

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// voyage runs an experiment into a folder of the test and returns its result.
func voyage(t *testing.T, e *Experiment, o Options) *Result {
	t.Helper()
	folder := t.TempDir()
	o.Folder, o.Shared, o.Version = filepath.Join(folder, "report"), filepath.Join(folder, "shared"), "test"
	r, err := e.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.WriteReport(o.Folder); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRunIteratesAllCells(t *testing.T) {
	r := voyage(t, sea(t), Options{Seed: 7})
	if len(r.Cells) != 4 {
		t.Fatalf("expected 4 cells, got %d", len(r.Cells))
	}
	c := &r.Cells[0]
	if len(c.Iterations) != 3 || c.Iterations[2].Seed != 9 || c.Worth != Valid {
		t.Errorf("expected 3 valid iterations with seeds from 7, got %+v", c.Iterations)
	}
	// Iterations have means of 10, 11 and 12.
	latency := c.Figure("latency")
	if latency == nil || latency.Mean != 11 || latency.Interval == nil ||
		!near(latency.Interval.High-latency.Interval.Low, 2*4.30265/1.73205, 1e-3) {
		t.Errorf("expected 11 ± 2.484, got %+v", latency)
	}
	if latency.Paper == nil || latency.Paper.Value != 12.5 || latency.Paper.Why == "" {
		t.Errorf("expected the paper's figure with a sentence, got %+v", latency.Paper)
	}
	twice := r.Comparisons[0]
	if twice.Value == nil || !near(*twice.Value, 21.0/11, 1e-9) || twice.Interval == nil || *twice.Paper != 1.9 {
		t.Errorf("expected 21/11 with an interval, got %+v", twice)
	}
	if less := r.Comparisons[1]; less.Value == nil || !near(*less.Value, 100*(1-5.0/15), 1e-9) {
		t.Errorf("expected 66.7 %% less, got %+v", less)
	}
	if len(r.Notes) != 1 {
		t.Errorf("expected the note once, got %q", r.Notes)
	}
}

func TestShortRun(t *testing.T) {
	r := voyage(t, sea(t), Options{Short: true})
	if len(r.Cells) != 2 || len(r.Cells[0].Iterations) != 1 || r.IterationSeconds != 0.5 {
		t.Fatalf("expected one iteration of 0.5 s of 2 cells, got %d cells", len(r.Cells))
	}
	if s := r.Cells[0].Figure("latency"); s == nil || s.Interval == nil || s.Interval.Method != MethodBatches {
		t.Errorf("expected an interval from parts of the only iteration, got %+v", s)
	}
	if v := r.view(nil); len(v.Spreads) > 0 {
		t.Errorf("expected no statistics over one iteration, got %+v", v.Spreads)
	}
	if less := r.Comparisons[1]; less.Value != nil {
		t.Errorf("expected no value of a cell that did not run, got %g", *less.Value)
	}
}

func TestOnly(t *testing.T) {
	r := voyage(t, sea(t), Options{Only: Parameters{{"height", 30}}, Iterations: 2, Duration: time.Second})
	if len(r.Cells) != 1 || len(r.Cells[0].Iterations) != 2 || r.IterationSeconds != 1 {
		t.Errorf("expected two iterations of 1 s of one cell, got %+v", r.Cells)
	}
	if _, err := sea(t).Run(t.Context(), Options{Only: Parameters{{"height", 31}}}); !errors.Is(err, ErrNoCells) {
		t.Errorf("expected an error if no cell is left, got %v", err)
	}
}

const fates = `
name: fates
title: What may happen
scenario: test/waves
iterations: 2
seconds: 1
parameters: {height: 8}
matrix:
  - {fate: [good, sinks, skipped, slow, late]}
plots:
  - {name: latency, title: Latency, kind: bars, x: [fate], figures: [latency]}
`

func TestReportHasAllIterations(t *testing.T) {
	e, err := parse(t, fates)
	if err != nil {
		t.Fatal(err)
	}
	r := voyage(t, e, Options{})
	want := map[string]Validity{"fate=good": Valid, "fate=sinks": Failed, "fate=skipped": Skipped,
		"fate=slow": CPUBound, "fate=late": Invalid}
	for i := range r.Cells {
		c := &r.Cells[i]
		if c.Worth != want[c.Name] || len(c.Iterations) != 2 {
			t.Errorf("%s: expected 2 iterations %s, got %d %s", c.Name, want[c.Name], len(c.Iterations), c.Worth)
		}
		if c.Worth != Valid && c.Iterations[0].Reason == "" {
			t.Errorf("%s: expected a reason", c.Name)
		}
		if measured := c.Figure("latency") != nil; measured != (c.Worth == Valid || c.Worth == CPUBound ||
			c.Worth == Invalid) {
			t.Errorf("%s: figures present: %v", c.Name, measured)
		}
	}
	for _, row := range r.view(nil).Spreads {
		if len(row.Each) != 2 || row.Each[0].Validity != row.Worth {
			t.Errorf("%s, %s: expected both iterations, got %+v", row.Cell, row.Figure, row.Each)
		}
	}
	var text bytes.Buffer
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"2 valid, 2 cpu-bound, 2 invalid, 2 skipped, 2 failed", "the boat sank",
		"there is no sea", "the tide was late", "10 of 100 frames", "note: the sea is a sine"} {
		if !strings.Contains(text.String(), word) {
			t.Errorf("expected %q in the text:\n%s", word, text.String())
		}
	}
}

func TestInterruptionKeepsResults(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	count := 0
	scenario := Define(waves{Frames: 100}, waveQuantities, func(ctx context.Context, w waves, s Settings) (*Outcome,
		error) {
		if count++; count == 2 {
			cancel()
			return nil, ctx.Err()
		}
		return runWaves(ctx, w, s)
	})
	l, err := NewLibrary(Collection{nil, map[string]Scenario{"test/waves": scenario}})
	if err != nil {
		t.Fatal(err)
	}
	e, err := l.Parse([]byte(wavesFile))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	r, err := e.Run(ctx, Options{Folder: folder, Shared: filepath.Join(folder, "shared")})
	if err != nil || !r.Interrupted || r.Counts()[Valid] != 1 || r.Counts()[Failed] != 0 {
		t.Fatalf("expected one valid iteration and no failed one, got %v, %v", r.Counts(), err)
	}
	if err := r.WriteReport(folder); err != nil {
		t.Errorf("expected a report of the results so far, got %v", err)
	}
}

func TestRawFiles(t *testing.T) {
	scenario := Define(waves{}, waveQuantities, func(_ context.Context, _ waves, s Settings) (*Outcome, error) {
		for name, size := range map[string]int{"small": 10, "large.jsonl": 2 * compressed} {
			if err := os.WriteFile(s.File(name), make([]byte, size), 0o644); err != nil {
				return nil, err
			}
		}
		return NewOutcome(), nil
	})
	l, err := NewLibrary(Collection{nil, map[string]Scenario{"test/waves": scenario}})
	if err != nil {
		t.Fatal(err)
	}
	e, err := l.Parse([]byte("{name: a, title: b, scenario: test/waves, iterations: 1, seconds: 1}"))
	if err != nil {
		t.Fatal(err)
	}
	for _, none := range []bool{false, true} {
		folder := t.TempDir()
		if _, err := e.Run(t.Context(), Options{Folder: folder, Shared: filepath.Join(folder, "shared"),
			NoRaw: none}); err != nil {
			t.Fatal(err)
		}
		for name, there := range map[string]bool{"small": !none, "large.jsonl": false, "large.jsonl.gz": !none} {
			if _, err := os.Stat(filepath.Join(folder, "raw", "only", "0", name)); (err == nil) != there {
				t.Errorf("without raw files: %v: %s: expected it to be there: %v, got %v", none, name, there, err)
			}
		}
	}
}

func TestUnknownFiguresFail(t *testing.T) {
	for name, outcome := range map[string]func(*Outcome){
		"unknown":   func(o *Outcome) { o.Set("depth", 1) },
		"no number": func(o *Outcome) { o.Set("rate", 1/zero) },
	} {
		scenario := Define(waves{}, waveQuantities, func(context.Context, waves, Settings) (*Outcome, error) {
			o := NewOutcome()
			outcome(o)
			return o, nil
		})
		l, err := NewLibrary(Collection{nil, map[string]Scenario{"test/waves": scenario}})
		if err != nil {
			t.Fatal(err)
		}
		e, err := l.Parse([]byte("{name: a, title: b, scenario: test/waves, iterations: 1, seconds: 1}"))
		if err != nil {
			t.Fatal(err)
		}
		if r := voyage(t, e, Options{}); r.Cells[0].Worth != Failed {
			t.Errorf("%s: expected a failed iteration, got %s", name, r.Cells[0].Worth)
		}
	}
}

// TestRatioToZeros: a cell that measured 0 in most iterations has a mean above 0, but a ratio to this mean has no
// bound. The result can still be written.
func TestRatioToZeros(t *testing.T) {
	scenario := Define(waves{}, waveQuantities, func(_ context.Context, w waves, s Settings) (*Outcome, error) {
		o := NewOutcome()
		o.Set("rate", float64(w.Height))
		if w.Height == 1 && s.Iteration < 2 {
			o.Set("rate", 0)
		}
		return o, nil
	})
	l, err := NewLibrary(Collection{nil, map[string]Scenario{"test/waves": scenario}})
	if err != nil {
		t.Fatal(err)
	}
	e, err := l.Parse([]byte(`{name: a, title: b, why: c, scenario: test/waves, iterations: 3, seconds: 1,
		matrix: [{height: [1, 2]}],
		comparisons: [{name: higher, figure: rate, of: {height: 2}, to: {height: 1}, as: ratio}]}`))
	if err != nil {
		t.Fatal(err)
	}
	r := voyage(t, e, Options{})
	if higher := r.Comparisons[0]; higher.Value == nil || !near(*higher.Value, 6, 1e-9) || higher.Interval != nil {
		t.Errorf("expected 6 without interval, got %+v", higher)
	}
}

// zero is not a constant, so the compiler accepts a division by zero.
var zero = 0.0

func TestReportFiles(t *testing.T) {
	e := sea(t)
	folder := t.TempDir()
	r, err := e.Run(t.Context(), Options{Folder: folder, Shared: filepath.Join(folder, "shared"), Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.WriteReport(folder); err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, p := range e.Plots {
		wellFormed(t, p.Name, read(p.Name+".svg"))
	}
	for file, rows := range map[string]int{FiguresFile: 1 + 4*4, IterationsFile: 1 + 4*3*4} {
		table, err := csv.NewReader(strings.NewReader(read(file))).ReadAll()
		if err != nil || len(table) != rows {
			t.Errorf("%s: expected %d rows, got %d, %v", file, rows, len(table), err)
		}
	}
	var object map[string]any
	if err := json.Unmarshal([]byte(read(ResultFile)), &object); err != nil || object["experiment"] != "waves" {
		t.Errorf("expected JSON of the experiment, got %v, %v", object["experiment"], err)
	}
	html := read(PageFile)
	for _, word := range []string{
		"Waves by height and wind", "paper 042", "11.00 ± 2.48", "12.50 ± 1.50", "Our sea is smaller.",
		"the synthetic figure", "12 valid", "Latency &amp; height",
		"one frame", "Student&#39;s t over iterations", "the sea is a sine", "40.00, deviation 2.50",
		// Of iterations with 10, 11 and 12: their deviation, the least, the largest, and each.
		`<td class="n">1.00</td><td class="n">10.00</td><td class="n">12.00</td>` +
			`<td class="n valid">10.00</td><td class="n valid">11.00</td><td class="n valid">12.00</td>`,
	} {
		if !strings.Contains(html, word) {
			t.Errorf("expected %q on the page", word)
		}
	}
	for _, word := range []string{"<script", "http://fonts", "https://", "ZgotmplZ"} {
		if strings.Contains(html, word) {
			t.Errorf("expected no %q on the page", word)
		}
	}
}

// TestReportWithoutJSON: a series with a point that is not a number cannot be written as JSON; the tables and the page
// are still written.
func TestReportWithoutJSON(t *testing.T) {
	scenario := Define(waves{}, waveQuantities, func(context.Context, waves, Settings) (*Outcome, error) {
		o := NewOutcome()
		o.Set("rate", 1)
		o.Series("rate", "s", "Mbit/s", [][2]float64{{1, 1 / zero}})
		return o, nil
	})
	l, err := NewLibrary(Collection{nil, map[string]Scenario{"test/waves": scenario}})
	if err != nil {
		t.Fatal(err)
	}
	e, err := l.Parse([]byte("{name: a, title: b, scenario: test/waves, iterations: 1, seconds: 1}"))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	r, err := e.Run(t.Context(), Options{Folder: folder, Shared: filepath.Join(folder, "shared")})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.WriteReport(folder); err == nil || !strings.Contains(err.Error(), ResultFile) {
		t.Errorf("expected an error that names %s, got %v", ResultFile, err)
	}
	for _, name := range []string{FiguresFile, IterationsFile, PageFile} {
		if info, err := os.Stat(filepath.Join(folder, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: expected a file, got %v", name, err)
		}
	}
}

// wellFormed checks that a text is one svg element.
func wellFormed(t *testing.T, name, text string) {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(text))
	elements := 0
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if start, ok := token.(xml.StartElement); ok {
			if elements == 0 && start.Name.Local != "svg" {
				t.Errorf("%s: expected svg first, got %s", name, start.Name.Local)
			}
			elements++
		}
	}
	if elements < 10 {
		t.Errorf("%s: expected a drawing, got %d elements", name, elements)
	}
}

func TestIndex(t *testing.T) {
	folder := t.TempDir()
	r := voyage(t, sea(t), Options{Short: true})
	if err := WriteIndex(folder, []*Result{r}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(folder, IndexFile))
	if err != nil || !strings.Contains(string(text), `href="waves/report.html"`) {
		t.Errorf("expected a link to the report, got %v:\n%s", err, text)
	}
}
