package report

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

	"go.uber.org/goleak"

	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/experiment/experimenttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// written runs the experiment of a file, writes its report, and returns the result and the folder of the report.
func written(t *testing.T, file string, o experiment.Options) (*experiment.Result, string) {
	t.Helper()
	r := experimenttest.Result(t, experimenttest.Parse(t, experimenttest.Run, file), o)
	folder := t.TempDir()
	if err := Write(r, folder); err != nil {
		t.Fatal(err)
	}
	return r, folder
}

func TestReportFiles(t *testing.T) {
	r, folder := written(t, experimenttest.File, experiment.Options{})
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, p := range r.Experiment.Plots {
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
		// Iterations with 10, 11 and 12 have these values: deviation, smallest, largest, and each iteration.
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

func TestEveryIterationIsReported(t *testing.T) {
	r, _ := written(t, experimenttest.Fates, experiment.Options{})
	for _, row := range newView(r, nil).Spreads {
		if len(row.Each) != 2 || row.Each[0].Validity != row.Worth {
			t.Errorf("%s, %s: expected both iterations, got %+v", row.Cell, row.Figure, row.Each)
		}
	}
	var text bytes.Buffer
	if err := WriteText(r, &text); err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"2 valid, 2 cpu-bound, 2 invalid, 2 skipped, 2 failed", "the boat sank",
		"there is no sea", "the tide was late", "10 of 100 frames", "note: the sea is a sine"} {
		if !strings.Contains(text.String(), word) {
			t.Errorf("expected %q in the text:\n%s", word, text.String())
		}
	}
}

func TestOneIterationHasNoSpread(t *testing.T) {
	r, _ := written(t, experimenttest.File, experiment.Options{Short: true})
	if v := newView(r, nil); len(v.Spreads) > 0 {
		t.Errorf("expected no spread over one iteration, got %+v", v.Spreads)
	}
}

// TestInterruptedReport: the second of four cells has no iteration.
func TestInterruptedReport(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	count := 0
	e := experimenttest.Parse(t, func(ctx context.Context, w experimenttest.Waves, s experiment.Settings) (
		*experiment.Outcome, error) {
		if count++; count == 2 {
			cancel()
		}
		return experimenttest.Run(ctx, w, s)
	}, experimenttest.File)
	folder := t.TempDir()
	r, err := e.Run(ctx, experiment.Options{Folder: folder, Shared: filepath.Join(folder, "shared")})
	if err != nil || !r.Interrupted {
		t.Fatalf("expected an interrupted run, got %v", err)
	}
	if err := Write(r, folder); err != nil {
		t.Errorf("expected a report of the measured cells, got %v", err)
	}
}

// TestReportWithoutJSON: one file cannot be written. The tables and the page are still written.
func TestReportWithoutJSON(t *testing.T) {
	r, _ := written(t, experimenttest.File, experiment.Options{Short: true})
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, ResultFile), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Write(r, folder); err == nil || !strings.Contains(err.Error(), ResultFile) {
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
	r, _ := written(t, experimenttest.File, experiment.Options{Short: true})
	folder := t.TempDir()
	if err := WriteIndex(folder, []*experiment.Result{r}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(folder, IndexFile))
	if err != nil || !strings.Contains(string(text), `href="waves/report.html"`) {
		t.Errorf("expected a link to the report, got %v:\n%s", err, text)
	}
}
