package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestCommandLine checks that errors in flags are reported before anything is connected.
func TestCommandLine(t *testing.T) {
	tests := []struct{ line, want string }{
		{"publish", "expected --room and --identity"},
		{"publish --room r --identity i --source lidar", "unknown source"},
		{"publish --room r --identity i --source ply:nowhere", "nowhere"},
		{"publish --token t --tiles 3", "3 tiles, expected one of"},
		{"publish --token t --qualities best", "--qualities: invalid qualities"},
		{"publish --token t --codec mp3", `--codec: codec not available: "mp3"`},
		{"publish --token t --mode both", `--mode: expected alternatives or descriptions, got "both"`},
		{"publish --token t --vr2gather --codec draco",
			"--vr2gather: expected the codec cwi0 in mode alternatives, got \"draco\""},
		{"publish --token t --vr2gather --mode descriptions",
			"--vr2gather: expected the codec cwi0 in mode alternatives, got \"\" in mode descriptions"},
		{"publish --token t --audio tone --publication audio", "--publication"},
		{"publish --token t --audio nowhere.ogg", "nowhere.ogg"},
		{"publish --token t --fps 2000", "fps is 2000"},
		{"publish --token t --publication \x01", "invalid name"},
		{"publish --token t --max-bitrate 20", "expected a rate such as 20Mbit"},
		{"publish --token t --controller bbr", `controller is "bbr", expected auto, gcc or paper000`},
		{"publish --token t --pose 1,2", "--pose: expected X,Y,Z"},
		{"watch", "expected --room and --identity"},
		{"watch --token t --quality -3", "--quality: cannot read"},
		{"watch --token t --deadline -1s", "expected 0 or more"},
		{"watch --token t --max-bitrate much", "expected a rate such as 20Mbit"},
		{"watch --token t --max-bitrate 20Mbit --start-bitrate 30Mbit", "start bitrate"},
		{"watch --token t --viewpoint nowhere.csv", "--viewpoint: open nowhere.csv"},
		{"watch --token t --save /dev/null/frames", "--save"},
		{"watch --token t --audio /dev/null/out.ogg", "--audio"},
		{"watch --room r --identity i --server http://example.org", "expected ws://"},
		{"watch --room r --identity i --server ws://127.0.0.1:1", "connect to ws://127.0.0.1:1"},
		{"watch --token t --render --render-every 0", "--render-every: expected 1 or more, got 0"},
		{"watch --token t --render --render-from 1,2", "--render-from: expected X,Y,Z"},
		{"watch --token t --render-dir /dev/null/pictures", "--render-dir: mkdir /dev/null"},
		{"watch now", "unknown command"},
		{"listen", "unknown command"},
	}
	for _, test := range tests {
		t.Run(test.line, func(t *testing.T) {
			root := newRoot()
			root.SetArgs(strings.Fields(test.line))
			var out bytes.Buffer
			root.SetOut(&out)
			root.SetErr(&out)
			if err := root.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("expected an error with %q, got %v", test.want, err)
			}
		})
	}
}

func TestRecordErrors(t *testing.T) {
	exists := filepath.Join(t.TempDir(), "exists")
	if err := os.WriteFile(exists, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for line, says := range map[string]string{
		"record":                                         "--output: expected a file",
		"record --output o --content video":              `--content: expected points, images or encoded, got "video"`,
		"record --output o --seconds -1":                 "--seconds",
		"record --output o --source lidar":               "unknown source",
		"record --output o --content images":             "the source has no depth images",
		"record --output o --background green":           "--background",
		"record --output o --content encoded --tiles 99": "--tiles",
		"record --output " + exists:                      "exist",
		"publish --token t --background range=3:1":       "--background: invalid background",
		"publish --token t --source replay:nowhere":      "nowhere",
		"publish --token t --source replay:" + exists:    "VOLJRNL1",
	} {
		root := newRoot()
		root.SetArgs(strings.Fields(line))
		root.SetOut(io.Discard)
		root.SetErr(io.Discard)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if err := root.ExecuteContext(ctx); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: expected an error with %q, got %v", line, says, err)
		}
		cancel()
	}
	if _, err := os.Stat("o"); err == nil {
		t.Error("a file was left behind")
		_ = os.Remove("o")
	}
}
