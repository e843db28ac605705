package peer

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/lab/baseline"
	"github.com/volsfu/volsfu/lab/carriage"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// command runs a command and returns its output.
func command(t *testing.T, cmd *cobra.Command, arguments ...string) ([]byte, error) {
	t.Helper()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&bytes.Buffer{})
	cmd.SetArgs(arguments)
	err := cmd.ExecuteContext(t.Context())
	return out.Bytes(), err
}

// TestPrepareAndPeer prepares frames, and sends them to a missing consumer of paper 002.
func TestPrepareAndPeer(t *testing.T) {
	frames := filepath.Join(t.TempDir(), "frames")
	text, err := command(t, PrepareCommand(), "--sizes", "3000", "--count", "2", "--fps", "100", "--output", frames)
	var prepared carriage.Prepared
	if err == nil {
		err = json.Unmarshal(text, &prepared)
	}
	if err != nil || prepared.Captures != 2 || prepared.Qualities[0].BytesPerCapture != 3000 {
		t.Fatalf("got %s, %v", text, err)
	}
	text, err = command(t, Command(), "--transport", "udp-chunks", "--role", "publish", "--connect", "127.0.0.1:9",
		"--frames", frames, "--fps", "100", "--seconds", "0.1")
	var summary carriage.Summary
	if err == nil {
		err = json.Unmarshal(text, &summary)
	}
	if err != nil || summary.Sent == nil || summary.Sent.FramesSent == 0 ||
		summary.Sent.Bytes != 3000*summary.Sent.FramesSent {
		t.Errorf("got %s, %v", text, err)
	}
}

func TestPeerRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		arguments []string
		want      error
	}{
		"transport": {[]string{"--transport", "pigeons", "--role", "watch"}, baseline.ErrConfig},
		"address":   {[]string{"--transport", "reflector", "--role", "watch"}, baseline.ErrConfig},
		"frames": {[]string{"--transport", "direct-tcp", "--role", "publish", "--listen", "127.0.0.1:0", "--frames",
			"x", "--fps", "0"}, carriage.ErrPrepared},
		"source": {[]string{"--transport", "direct-tcp", "--role", "publish", "--listen", "127.0.0.1:0", "--codec",
			"morse"}, carriage.ErrMaterial},
	} {
		if _, err := command(t, Command(), test.arguments...); !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, want %v", name, err, test.want)
		}
	}
	if _, err := command(t, Command(), "--min-bitrate", "fast"); err == nil {
		t.Errorf("expected an error that wraps %v", volumetric.ErrBitrate)
	}
}
