package library

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
func runCommand(arguments ...string) (string, error) {
	cmd := Command("test")
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
