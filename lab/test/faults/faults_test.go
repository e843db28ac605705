// Package faults runs the laboratory's checks with servers that fail on purpose (internal/fault): a check that a faulty
// server passes proves nothing about a sound one.
package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/long"
	"github.com/volsfu/volsfu/test/program"
)

// root is the source tree.
var root = filepath.Join("..", "..", "..")

// built is the way to build programs with the tag. Without Draco, the client publishes nothing, so cgo stays on.
func built(tag string) program.Build { return program.Build{Cgo: true, Tag: tag} }

// TestOrdinaryBuildHasNoFaults: an ordinary server contains neither a symbol of package fault nor the name of its
// variable.
func TestOrdinaryBuildHasNoFaults(t *testing.T) {
	for _, test := range []struct {
		tag   string
		there bool
	}{{"", false}, {"faulty", true}} {
		server := built(test.tag).Path(t, "volsfu")
		symbols, err := exec.Command("go", "tool", "nm", server).Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, symbol := range []string{"volsfu/internal/fault.", "ingress.(*Ingress).postpone"} {
			if got := bytes.Contains(symbols, []byte(symbol)); got != test.there {
				t.Errorf("tag %q: a symbol with %s: %v, expected %v", test.tag, symbol, got, test.there)
			}
		}
		content, err := os.ReadFile(server)
		if err != nil {
			t.Fatal(err)
		}
		if got := bytes.Contains(content, []byte("SERVER_FAULT")); got != test.there {
			t.Errorf("tag %q: the program names SERVER_FAULT: %v, expected %v", test.tag, got, test.there)
		}
	}
}

// faulty is a fault and a check that claims the opposite.
type faulty struct {
	fault, check, only string
	// line is the beginning of the name of the line that must miss its target. If it is empty, the check must fail with
	// an error that contains failure.
	line, failure string
}

// measured reports whether the check measures a loss or a latency, which other checks at the same time would affect.
// A server that crashes or never switches is one on a busy machine, too.
func (c *faulty) measured() bool { return c.fault == "loss" || c.fault == "delay" }

// crashed is the error of a check whose process has ended with the server.
const crashed = "the crash that SERVER_FAULT asks for"

// cases take about eight minutes: each collection once for each fault whose opposite it claims, with its quickest
// checks.
var cases = []faulty{
	{fault: "crash=10s", check: "first-light", only: "1", line: "frames decoded per second and tile"},
	{fault: "crash=10s", check: "first-light", only: "3", failure: crashed},
	{fault: "crash=4s", check: "hot-path", only: "5", failure: "program volsfu serve"},
	{fault: "crash=10s", check: "congestion", only: "8", failure: crashed},
	{fault: "crash=10s", check: "lab", only: "4", failure: "program volsfu serve"},
	{fault: "crash=3s", check: "interop", only: "3", failure: crashed},
	{fault: "loss", check: "first-light", only: "1", line: "frames missing, not reported"},
	{fault: "loss", check: "hot-path", only: "5", line: "packets lost inside the server"},
	{fault: "loss", check: "hot-path", only: "8", line: "frames lost"},
	{fault: "loss", check: "congestion", only: "10", line: "incomplete frames"},
	{fault: "loss", check: "interop", only: "3", line: "frames that others lost when an old peer was killed"},
	{fault: "delay", check: "first-light", only: "1", line: "latency from capture to decoded, p50"},
	{fault: "delay", check: "hot-path", only: "4", line: "residence time, p50"},
	{fault: "delay", check: "lab", only: "5", line: "residence of a packet"},
	{fault: "no-switch", check: "first-light", only: "3", line: "switches seen"},
	{fault: "no-switch", check: "congestion", only: "9", failure: "every tile arrives at its highest quality"},
	{fault: "no-switch", check: "interop", only: "1", failure: "the chosen qualities arrive"},
}

// patience bounds a check: the longest of them takes a minute.
const patience = 4 * time.Minute

// TestFaultyServersMissTargets runs checks with faulty servers.
func TestFaultyServersMissTargets(t *testing.T) {
	long.Test(t)
	bin := built("faulty").Folder(t, "volsfu", "volpeer", "vollab")
	for _, c := range cases {
		t.Run(c.fault+"/"+c.check+" "+c.only, func(t *testing.T) {
			if !c.measured() {
				t.Parallel()
			}
			report, said := c.run(t, bin)
			if report.Missed == 0 || len(report.Sections) != 1 {
				t.Fatalf("%d targets are missed in %d checks, expected some in one:\n%s", report.Missed,
					len(report.Sections), said)
			}
			section := &report.Sections[0]
			switch {
			case c.line == "" && !strings.Contains(section.Error, c.failure):
				t.Errorf("the check failed with %q, expected %q in it", section.Error, c.failure)
			case c.line != "" &&
				!slices.ContainsFunc(section.Lines, func(l claim.Line) bool {
					return strings.HasPrefix(l.Name,
						c.line) && l.Missed()
				}):
				t.Errorf("no line %q misses its target in %v, error %q", c.line, section.Lines, section.Error)
			}
		})
	}
}

// run runs the check, which must end with the status of missed targets.
func (c *faulty) run(t *testing.T, bin string) (*lab.Report, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "vollab"), "check", c.check, "--only", c.only, "--json")
	// The tests of interoperation are built with the tag, too.
	cmd.Dir, cmd.Env = root, append(os.Environ(), "SERVER_FAULT="+c.fault, "GOFLAGS=-tags=faulty")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	var status *exec.ExitError
	if !errors.As(err, &status) || status.ExitCode() != 1 {
		t.Fatalf("the check ended with %v, expected exit status 1:\n%s\n%s", err, out.String(), said.String())
	}
	var report lab.Report
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatalf("%v:\n%s", err, out.String())
	}
	return &report, said.String()
}
