package firstlight

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/lab"
)

// TestProgramsAbsent: the folder of a test program does not contain volsfu.
func TestProgramsAbsent(t *testing.T) {
	if _, err := NewDemo(lab.Progress{}).Run(context.Background()); !errors.Is(err, lab.ErrProgram) ||
		!strings.Contains(err.Error(), "make build") {
		t.Errorf("got %v, want ErrProgram and the advice", err)
	}
}

func TestDataAbsent(t *testing.T) {
	s := NewSources(lab.Progress{})
	s.Data = t.TempDir()
	lines, err := s.Run(context.Background())
	if err != nil || len(lines) != 2 {
		t.Fatalf("got %v, %v; want a line for each source", lines, err)
	}
	for _, l := range lines {
		if l.Skipped == "" || !strings.Contains(l.Skipped, lab.TestDataVariable) {
			t.Errorf("%v: want a skipped line and the variable to set", l)
		}
	}
}

// TestSummary reads the output of volpeer watch --json, with and without received frames.
func TestSummary(t *testing.T) {
	tests := []struct {
		name, text string
		missed     []string
	}{
		{"all targets met",
			`{"fps":29.5,"frames_undecodable":0,"latency_ms":{"p50":20,"p95":30,"p99":35,"max":50},"publications":[` +
				strings.TrimSuffix(strings.Repeat(`{"fps":29},`, 8), ",") + `]}`, nil},
		{"slow, and with broken frames",
			`{"fps":26.9,"frames_undecodable":2,"frames_missing":1,"latency_ms":{"p50":51,"p95":55,` +
				`"p99":60,"max":70},"publications":[` +
				strings.TrimSuffix(strings.Repeat(`{"fps":29},`, 7), ",") + `]}`,
			[]string{"frames decoded per second and tile", "tiles received", "frames undecodable",
				"frames missing, not reported by the server", "latency from capture to decoded, p50"}},
		{"no frames",
			`{"fps":0,"frames_undecodable":0,"latency_ms":{"p50":null,"p95":null,"p99":null,"max":null},` +
				`"publications":[]}`,
			[]string{"frames decoded per second and tile", "tiles received", "latency from capture to decoded, p50"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var s show
			if err := json.Unmarshal([]byte(test.text), &s.watch); err != nil {
				t.Fatal(err)
			}
			var missed []string
			for _, l := range s.lines("", 30) {
				if l.Missed() {
					missed = append(missed, l.Name)
				}
			}
			if strings.Join(missed, "|") != strings.Join(test.missed, "|") {
				t.Errorf("missed %q, want %q", missed, test.missed)
			}
		})
	}
}
