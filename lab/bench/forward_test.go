package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/hotpath"
)

// run runs a command and returns its output.
func run(t *testing.T, cmd *cobra.Command, arguments ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&bytes.Buffer{})
	cmd.SetArgs(arguments)
	err := cmd.ExecuteContext(ctx)
	return out.String(), err
}

func TestForwardRefuses(t *testing.T) {
	tests := []struct {
		name      string
		arguments []string
		err       error
	}{
		{"no server beside a test", nil, lab.ErrProgram},
		{"another comparison", []string{"--compare", "other"}, errComparison},
		{"pacing that is neither on nor off", []string{"--pacing", "maybe"}, hotpath.ErrPacing},
		{"a load without tracks", []string{"--tracks", "0"}, hotpath.ErrLoad},
		{"no time", []string{"--seconds", "0"}, hotpath.ErrLoad},
		{"a server without its metrics", []string{"--server", "ws://127.0.0.1:1"}, hotpath.ErrLoad},
		{"losses with --compare", []string{"--compare", "pion", "--loss", "0.02", "--rtt", "20ms"}, hotpath.ErrLoad},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if out, err := run(t, ForwardCommand(), test.arguments...); !errors.Is(err, test.err) || out != "" {
				t.Errorf("got %v and %q, want %v and no output", err, out, test.err)
			}
		})
	}
}

func TestLimitCommand(t *testing.T) {
	out, err := run(t, LimitCommand(), "--json")
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	var figures map[string]float64
	if err := json.Unmarshal([]byte(out), &figures); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"seal_segmented_us_per_packet", "plain_send_us_per_packet", "receive_us_per_packet"} {
		if figures[key] <= 0 {
			t.Errorf("%s is %g", key, figures[key])
		}
	}
	if out, err := run(t, LimitCommand()); err != nil || !strings.Contains(out, "seal and segmented send") {
		t.Errorf("got %v, %q", err, out)
	}
}
