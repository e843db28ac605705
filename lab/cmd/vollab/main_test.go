package main

import (
	"bytes"
	"strings"
	"testing"
)

// run runs vollab and returns what it prints.
func run(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	root := newRoot()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetArgs(arguments)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

func TestVersion(t *testing.T) {
	if out, err := run(t, "version"); err != nil || out != "vollab "+version+"\n" {
		t.Errorf("got %v, %q", err, out)
	}
}

// TestFanoutIsHidden: the server to compare with is for forward alone.
func TestFanoutIsHidden(t *testing.T) {
	out, err := run(t, "--help")
	if err != nil || strings.Contains(out, "fanout") || !strings.Contains(out, "forward") || !strings.Contains(out, "limit") {
		t.Errorf("got %v, %s", err, out)
	}
}
