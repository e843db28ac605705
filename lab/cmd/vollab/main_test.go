package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/lab/check"
	"github.com/volsfu/volsfu/lab/direct"
	"github.com/volsfu/volsfu/lab/link"
)

// run runs vollab and returns its output.
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

// TestFanoutIsHidden: the server for comparisons is started by vollab forward only, and is not in the help.
func TestFanoutIsHidden(t *testing.T) {
	out, err := run(t, "--help")
	if err != nil || strings.Contains(out, "fanout") || !strings.Contains(out, "forward") ||
		!strings.Contains(out, "limit") {
		t.Errorf("got %v, %s", err, out)
	}
}

func TestExitCodes(t *testing.T) {
	for want, err := range map[int]error{
		1: check.ErrMissed, 2: fmt.Errorf("check: %w", check.ErrIncomplete), 3: direct.ErrNothing,
		7: link.ExitStatus(7),
	} {
		if got := exitCode(err); got != want {
			t.Errorf("%v: exit status %d, want %d", err, got, want)
		}
	}
	if got := exitCode(errors.New("no such file")); got != 1 {
		t.Errorf("exit status %d, want 1", got)
	}
}

// TestMeasuringCommands: the commands of other packages are registered, and end cleanly at a signal.
func TestMeasuringCommands(t *testing.T) {
	for _, line := range [][]string{{"direct", "produce"}, {"direct", "consume"}, {"compare"}, {"codec"}} {
		cmd, rest, err := newRoot().Find(line)
		if err != nil || len(rest) > 0 || cmd.Name() != line[len(line)-1] {
			t.Errorf("vollab %v: got command %v, %v, %v", line, cmd.Name(), rest, err)
		}
	}
}
