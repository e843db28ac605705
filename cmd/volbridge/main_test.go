package main

import (
	"slices"
	"strings"
	"testing"
)

func TestArgumentsOfTheOriginalPeer(t *testing.T) {
	launch := []string{"-p", ":8000", "-i", "-o", "-sfu", "host:8094", "-c", "2", "-t", "9", "-q", "3", "-l", "0"}
	want := []string{"-p", ":8000", "-i", "-o", "--sfu", "host:8094", "-c", "2", "-t", "9", "-q", "3", "-l", "0"}
	for _, test := range []struct{ started, want []string }{
		{launch, want},
		{nil, nil},
		{[]string{"-sfu=a:1", "--p=:8000", "--i=false", "--tiles", "4"},
			[]string{"--sfu=a:1", "-p=:8000", "-i=false", "--tiles", "4"}},
	} {
		if got := arguments(test.started); !slices.Equal(got, test.want) {
			t.Errorf("%q: %q, expected %q", test.started, got, test.want)
		}
	}
	if err := newRoot().ParseFlags(want); err != nil {
		t.Errorf("the launch line is not understood: %v", err)
	}
}

// TestCommandLine checks that errors in flags are reported before anything is connected.
func TestCommandLine(t *testing.T) {
	for line, want := range map[string]string{
		"":                     "expected --port",
		"watch":                "unknown command",
		"--port 8000":          "expected :PORT",
		"--debug --seconds -1": "--seconds: expected 0 or more",
	} {
		root := newRoot()
		root.SetArgs(strings.Fields(line))
		if err := root.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, expected an error with %q", line, err, want)
		}
	}
	var out strings.Builder
	root := newRoot()
	root.SetOut(&out)
	root.SetArgs([]string{"version"})
	if err := root.ExecuteContext(t.Context()); err != nil || out.String() != "volbridge dev\n" {
		t.Errorf("version: got %q, %v", out.String(), err)
	}
}
