package reproduction

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/experiment/paper004"
)

// reproduce runs vollab reproduce 004, and returns its output and its messages.
func reproduce(arguments ...string) (text, messages string, err error) {
	cmd := Command("test")
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	var out, console bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&console)
	cmd.SetArgs(append([]string{"004"}, arguments...))
	err = cmd.Execute()
	return out.String(), console.String(), err
}

// TestRecorded compares a recorded run whose iterations failed because programs are missing. A run of another extent is
// not compared, and a folder without journals is an error.
func TestRecorded(t *testing.T) {
	e, err := newLibrary(t).Find("layers")
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	if _, err := e.Run(t.Context(), experiment.Options{Iterations: usual.Iterations, Duration: usual.Duration(),
		Seed: 1, Cells: []string{"fps=30"}, Programs: t.TempDir(), Folder: filepath.Join(out, "layers"),
		Shared: t.TempDir(), Version: "test"}); err != nil {
		t.Fatal(err)
	}
	text, _, err := reproduce("--recorded", "--tier", "claims", "--out", out)
	if err != nil || !strings.Contains(text, "figure 8") {
		t.Fatalf("expected the items of the paper, got %v:\n%s", err, text)
	}
	if err := CheckPage(out, "004"); err != nil {
		t.Error(err)
	}
	page, err := os.ReadFile(filepath.Join(out, "004.md"))
	if err != nil || !strings.Contains(string(page), "| 1 | 5 × 20 | test | 0 | 0 | 0 | 5 | 0 |") {
		t.Errorf("expected five failed iterations, got %v:\n%s", err, page)
	}
	_, messages, err := reproduce("--recorded", "--tier", "tour", "--out", out)
	if want := "no cell of it with 5 iterations of 20 s and seed 1"; !errors.Is(err, errUnrecorded) ||
		!strings.Contains(messages, want) {
		t.Errorf("expected an error of the extent and %q, got %v, %q", want, err, messages)
	}
	if _, _, err := reproduce("--recorded", "--tier", "claims", "--out", t.TempDir()); !errors.Is(err, errUnrecorded) {
		t.Errorf("expected an error without journals, got %v", err)
	}
}

// record writes the journal of layers-network to a folder, as an earlier version with all iterations of tier claims
// would. The packets of every cell take 40 µs.
func record(t *testing.T, folder string) {
	t.Helper()
	text, err := fs.ReadFile(paper004.Collection().Files, "layers-network.yaml")
	if err != nil {
		t.Fatal(err)
	}
	e, err := newLibrary(t).Find("layers-network")
	if err != nil {
		t.Fatal(err)
	}
	run := func(context.Context, map[string]any, experiment.Settings) (*experiment.Outcome, error) {
		o := experiment.NewOutcome()
		o.Sample("total", slices.Repeat([]float64{40}, 300))
		return o, nil
	}
	l, err := experiment.NewLibrary(experiment.Collection{
		Files: fstest.MapFS{"layers-network.yaml": &fstest.MapFile{Data: text}},
		Scenarios: map[string]experiment.Scenario{
			"paper004/probes": experiment.Define(map[string]any{}, e.Quantities(), run),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if e, err = l.Find("layers-network"); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Run(t.Context(), experiment.Options{Iterations: usual.Iterations, Duration: usual.Duration(),
		Seed: 1, Folder: filepath.Join(folder, "layers-network"), Shared: t.TempDir(), Version: "v0"}); err != nil {
		t.Fatal(err)
	}
}

// row returns the row of a table that begins with some words, with single spaces; empty if there is none.
func row(table, begin string) string {
	for line := range strings.Lines(table) {
		if words := strings.Join(strings.Fields(line), " "); strings.HasPrefix(words+" ", begin+" ") {
			return words
		}
	}
	return ""
}

// TestFrom plans without the cells of an earlier run, and compares them.
func TestFrom(t *testing.T) {
	from, out := t.TempDir(), t.TempDir()
	record(t, from)
	text, _, err := reproduce("--tier", "claims", "--plan", "--from", from, "--out", out)
	if got := row(text, "layers-network"); err != nil || got != "layers-network 5 × 20 0 6 0s" {
		t.Errorf("expected no cell of layers-network, got %v:\n%s", err, text)
	}
	text, _, err = reproduce("--tier", "claims", "--plan", "--only", "layers,layers-network", "--out", out)
	if got := row(text, "layers-network"); err != nil || got != "layers-network 5 × 20 6 0 12m6s" ||
		row(text, "layers-protocol") != "" {
		t.Errorf("expected the plan of two experiments, got %v:\n%s", err, text)
	}
	// Nothing is left to run: the cells are recorded.
	text, _, err = reproduce("--tier", "claims", "--only", "layers-network", "--from", from, "--out", out)
	if err != nil || row(text, "004 figure 13") != "004 figure 13 reproduced" {
		t.Errorf("expected the recorded values to be compared, got %v:\n%s", err, text)
	}
	page, err := os.ReadFile(filepath.Join(out, "004.md"))
	if err != nil || !strings.Contains(string(page), "| 6 | 5 × 20 | v0 | 30 | 0 | 0 | 0 | 0 |") {
		t.Errorf("expected 30 iterations of an earlier version, got %v:\n%s", err, page)
	}
	for want, arguments := range map[string][]string{
		errFrom.Error():     {"--from", out, "--out", out},
		"has no journal":    {"--from", t.TempDir(), "--out", out},
		"no such file":      {"--from", filepath.Join(from, "none"), "--out", out},
		"--only: expected ": {"--only", "sfu-table1", "--out", out},
	} {
		if _, _, err := reproduce(append(arguments, "--tier", "claims", "--plan")...); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v: expected %q, got %v", arguments, want, err)
		}
	}
}
