package control

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
)

// command runs vollab control and returns its output.
func command(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	cmd := Command()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&bytes.Buffer{})
	cmd.SetArgs(arguments)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestControlCommand(t *testing.T) {
	plot := filepath.Join(t.TempDir(), "run.svg")
	arguments := []string{"loss:2", "--seconds", "3", "--rtt", "30ms", "--mbps", "5", "--queue", "codel", "--pacing",
		"burst5ms", "--feedback", "ccfb"}
	out, err := command(t, append(arguments, "--json", "--plot", plot)...)
	if err != nil {
		t.Fatal(err)
	}
	var figures map[string]any
	if err := json.Unmarshal([]byte(out), &figures); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"utilisation", "queue_ms", "frame_latency_ms", "frames_sent", "frames_undecodable",
		"frames_dropped_whole", "repair_overhead", "padding_overhead"} {
		if figures[key] == nil {
			t.Errorf("there is no %s in %s", key, out)
		}
	}
	if drawn, err := os.ReadFile(plot); err != nil || !strings.HasPrefix(string(drawn), "<svg ") {
		t.Errorf("got %v and %.20q, want a diagram", err, drawn)
	}
	again, err := command(t, append(arguments, "--json")...)
	if err != nil || again != out {
		t.Errorf("the same seed gives %s (%v), want %s", again, err, out)
	}
	if text, err := command(t, append(arguments, "--seed", "2")...); err != nil ||
		!strings.Contains(text, "frames sent") {
		t.Errorf("got %v and %q, want a table", err, text)
	}
}

func TestControlRefuses(t *testing.T) {
	for _, test := range []struct {
		name      string
		arguments []string
		err       error
	}{
		{"no such case", []string{"steep:5"}, ErrCase},
		{"no such queue", []string{"ramp", "--queue", "lifo"}, ErrCase},
		{"no such pacing", []string{"ramp", "--pacing", "slowly"}, pacing.ErrMode},
		{"no such feedback", []string{"ramp", "--feedback", "by post"}, ErrCase},
		{"no retransmissions of a live run", []string{"ramp", "--live", "--no-rtx"}, ErrCase},
		{"no such controller", []string{"ramp", "--controller", "pid"}, congestion.ErrConfig},
		{"no place for a plot", []string{"steady:5", "--seconds", "2", "--plot", "/nowhere/run.svg"}, os.ErrNotExist},
	} {
		t.Run(test.name, func(t *testing.T) {
			if out, err := command(t, test.arguments...); !errors.Is(err, test.err) || out != "" {
				t.Errorf("got %v and %q, want %v and nothing", err, out, test.err)
			}
		})
	}
}
