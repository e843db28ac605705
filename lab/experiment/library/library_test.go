package library

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/experiment/report"
)

// TestLibrary reads every experiment of this program.
func TestLibrary(t *testing.T) {
	l, err := New()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sfu-table1", "sfu-table2", "sfu-fig3", "sfu-fig4", "sfu-fig5-6", "scale"} {
		e, err := l.Find(name)
		if err != nil {
			t.Error(err)
			continue
		}
		short := 0
		for _, c := range e.Cells() {
			if c.Short {
				short++
			}
		}
		if short == 0 || len(e.Plots) == 0 {
			t.Errorf("%s: expected short cells and plots, got %d and %d", name, short, len(e.Plots))
		}
	}
}

// TestDocumentedFile reads the file that docs/experiments.md shows.
func TestDocumentedFile(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "experiments.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	text, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("expected a file in YAML on the page")
	}
	l, err := New()
	if err != nil {
		t.Fatal(err)
	}
	e, err := l.Parse([]byte(text))
	if err != nil || len(e.Cells()) != 8 {
		t.Errorf("expected an experiment of 8 cells, got %v", err)
	}
}

// runCommand runs vollab run.
func runCommand(arguments ...string) (string, error) { return execute(Command("test"), arguments...) }

// execute runs a command and returns its output.
func execute(cmd *cobra.Command, arguments ...string) (string, error) {
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&bytes.Buffer{})
	cmd.SetArgs(arguments)
	err := cmd.Execute()
	return out.String(), err
}

func TestRunList(t *testing.T) {
	text, err := runCommand("list")
	if err != nil || !strings.Contains(text, "sfu-table1") || !strings.Contains(text, "scale/room") {
		t.Errorf("expected experiments and scenarios, got %v:\n%s", err, text)
	}
}

func TestRunErrors(t *testing.T) {
	folder := t.TempDir()
	broken := filepath.Join(folder, "broken.yaml")
	if err := os.WriteFile(broken, []byte("name: x\ncolour: red\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name      string
		arguments []string
		want      string
	}{
		{"no name", nil, "expected the name of an experiment"},
		{"unknown", []string{"sfu-table9"}, "sfu-table1"},
		{"both", []string{"scale", "--file", broken}, "not both"},
		{"broken file", []string{"--file", broken}, "colour"},
		{"no file", []string{"--file", filepath.Join(folder, "none.yaml")}, "none.yaml"},
		{"only", []string{"scale", "--only", "tiles"}, "name=value"},
		{"no cell", []string{"scale", "--only", "tiles=7", "--out", folder}, "no cell"},
		{"data", []string{"scale", "--data", broken}, "expected a folder"},
		{"seconds", []string{"scale", "--seconds", "-1"}, "expected 0 or more"},
	} {
		if _, err := runCommand(test.arguments...); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: expected an error with %q, got %v", test.name, test.want, err)
		}
	}
	if _, err := runCommand("sfu-table9"); !errors.Is(err, experiment.ErrName) {
		t.Errorf("expected an error of the name, got %v", err)
	}
}

// TestRunWithoutPrograms: an experiment without its programs fails, and the report has the reason.
func TestRunWithoutPrograms(t *testing.T) {
	folder := t.TempDir()
	text, err := runCommand("scale", "--short", "--only", "participants=2", "--seconds", "1", "--programs", folder,
		"--out", folder)
	if !errors.Is(err, errFailed) || !strings.Contains(text, "1 failed") {
		t.Errorf("expected a failed iteration, got %v:\n%s", err, text)
	}
	page, err := os.ReadFile(filepath.Join(folder, "scale", report.PageFile))
	if err != nil || !strings.Contains(string(page), "make build") {
		t.Errorf("expected a report that names the missing program, got %v", err)
	}
}

// TestRecordedRuns computes the report of a run again, and compares the run with itself. The run has one failed
// iteration and no figures.
func TestRecordedRuns(t *testing.T) {
	folder := t.TempDir()
	arguments := []string{"scale", "--short", "--only", "participants=2", "--seconds", "1", "--programs", folder,
		"--out", folder}
	if _, err := runCommand(arguments...); !errors.Is(err, errFailed) {
		t.Fatalf("expected a failed iteration, got %v", err)
	}
	run := filepath.Join(folder, "scale")
	figures, err := os.ReadFile(filepath.Join(run, report.IterationsFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(run, report.IterationsFile)); err != nil {
		t.Fatal(err)
	}
	if text, err := execute(ReportCommand(), run); err != nil || !strings.Contains(text, "1 failed") {
		t.Errorf("expected the report, got %v:\n%s", err, text)
	}
	again, err := os.ReadFile(filepath.Join(run, report.IterationsFile))
	if err != nil || !bytes.Equal(again, figures) {
		t.Errorf("expected the same file, got %v:\n%s", err, again)
	}
	if text, err := execute(DiffCommand(), run, run); err != nil || !strings.Contains(text, "0 of 0 figures differ") {
		t.Errorf("expected no difference, got %v:\n%s", err, text)
	}
	if _, err := execute(DiffCommand(), run, folder); !errors.Is(err, experiment.ErrJournal) {
		t.Errorf("expected an error of the journal, got %v", err)
	}
	// A failed iteration is finished, too.
	text, err := runCommand(append(arguments, "--resume")...)
	if !errors.Is(err, errFailed) || !strings.Contains(text, "1 failed") {
		t.Errorf("expected the run that is complete, got %v:\n%s", err, text)
	}
	if _, err := runCommand(append(arguments, "--resume", "--seed", "9")...); !errors.Is(err, experiment.ErrJournal) {
		t.Errorf("expected an error of the journal, got %v", err)
	}
}
