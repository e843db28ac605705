package hotpath

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

func TestConfiguredPacing(t *testing.T) {
	const before = "forward:\n  # Age.\n  # --forward-max-lag, VOLSFU_FORWARD_MAX_LAG\n  max_lag: 150ms\n\n"
	tests := []struct {
		name, printed, want string
		known               bool
	}{
		{"none", before, "", false},
		{"some", before + "  # How.\n  # --forward-pacing, VOLSFU_FORWARD_PACING\n  pacing: spread:0.4\n\n  # More.\n",
			"spread:0.4", true},
		{"off, in quotes", before + "  # --forward-pacing, VOLSFU_FORWARD_PACING\n  pacing: \"off\"\n", "off", true},
		{"cut off", before + "  # --forward-pacing,", "", true},
	}
	for _, test := range tests {
		if got, known := configuredPacing(test.printed); got != test.want || known != test.known {
			t.Errorf("%s: got %q, %v; want %q, %v", test.name, got, known, test.want, test.known)
		}
	}
}

func TestPacingArguments(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("servers are made of shell scripts")
	}
	server := func(says string) string {
		path := filepath.Join(t.TempDir(), "server")
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+says+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	paced := server(`echo "  # --forward-pacing, VOLSFU_FORWARD_PACING"; echo "  pacing: spread:0.4"`)
	unpaced := server(`echo "  # --forward-pacing, VOLSFU_FORWARD_PACING"; echo "  pacing: off"`)
	old, broken := server("echo nothing"), server("exit 1")
	tests := []struct {
		name   string
		pacing Pacing
		server string
		want   []string
		fails  bool
	}{
		{"as configured", PacingConfigured, broken, nil, false},
		{"on, by default", PacingOn, paced, nil, false},
		{"on, though configured off", PacingOn, unpaced, nil, true},
		{"on, without support", PacingOn, old, nil, true},
		{"off", PacingOff, paced, []string{"--forward-pacing=off"}, false},
		{"off, without support", PacingOff, old, nil, false},
		{"off, of a program that is not a server", PacingOff, broken, nil, true},
	}
	for _, test := range tests {
		got, err := test.pacing.arguments(context.Background(), test.server, nil)
		if !slices.Equal(got, test.want) || (err != nil) != test.fails || err != nil && test.pacing == PacingOn &&
			!errors.Is(err, ErrPacing) {
			t.Errorf("%s: got %v, %v; want %v", test.name, got, err, test.want)
		}
	}
}
