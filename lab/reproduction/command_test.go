package reproduction

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/lab/experiment"
)

// TestRecorded compares a recorded run whose iterations failed because programs are missing. A run of another extent is
// an error, and so is a folder without journals.
func TestRecorded(t *testing.T) {
	e, err := newLibrary(t).Find("layers")
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	if _, err := e.Run(t.Context(), experiment.Options{Iterations: claimIterations, Duration: claimTime,
		Cells: []string{"fps=30"}, Programs: t.TempDir(), Folder: filepath.Join(out, "layers"), Shared: t.TempDir(),
		Version: "test"}); err != nil {
		t.Fatal(err)
	}
	reproduce := func(tier Tier, out string) (string, error) {
		cmd := Command("test")
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		var text bytes.Buffer
		cmd.SetOut(&text)
		cmd.SetErr(io.Discard)
		cmd.SetArgs([]string{"004", "--recorded", "--tier", string(tier), "--out", out})
		err := cmd.Execute()
		return text.String(), err
	}
	text, err := reproduce(Claims, out)
	if err != nil || !strings.Contains(text, "figure 8") {
		t.Fatalf("expected the items of the paper, got %v:\n%s", err, text)
	}
	if err := CheckPage(out, "004"); err != nil {
		t.Error(err)
	}
	page, err := os.ReadFile(filepath.Join(out, "004.md"))
	if err != nil || !strings.Contains(string(page), "| 5 × 20 | test | 0 | 0 | 0 | 5 | 0 |") {
		t.Errorf("expected five failed iterations, got %v:\n%s", err, page)
	}
	if _, err := reproduce(Tour, out); !errors.Is(err, errExtent) {
		t.Errorf("expected an error of the extent, got %v", err)
	}
	if _, err := reproduce(Claims, t.TempDir()); !errors.Is(err, errUnrecorded) {
		t.Errorf("expected an error without journals, got %v", err)
	}
}
