package pipeline

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/suite"
	"github.com/volsfu/volsfu/test/claim"
)

func TestNumbers(t *testing.T) {
	checks := Checks(DefaultOptions(), lab.Progress{})
	if len(checks) != 7 {
		t.Fatalf("there are %d checks, want 7", len(checks))
	}
	for i, c := range checks {
		if c.Name() == "" {
			t.Errorf("check %d has no name", i+1)
		}
	}
	if name := checks[6].Name(); !strings.Contains(name, "10m0s") {
		t.Errorf("memory is watched as in %q, want ten minutes", name)
	}
}

// TestParts: parts after one that fails are measured, until an interruption.
func TestParts(t *testing.T) {
	broken := errors.New("broken")
	ctx, cancel := context.WithCancel(t.Context())
	c := &check{"trial", []part{
		func(context.Context) ([]claim.Line, error) {
			return []claim.Line{claim.Information("first", 1, "")}, broken
		},
		func(context.Context) ([]claim.Line, error) {
			cancel()
			return []claim.Line{claim.Information("second", 2, "")}, nil
		},
		func(context.Context) ([]claim.Line, error) {
			return []claim.Line{claim.Information("third", 3, "")}, nil
		},
	}}
	lines, err := c.Run(ctx)
	if !errors.Is(err, broken) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the reasons of both parts", err)
	}
	var names []string
	for _, l := range lines {
		names = append(names, l.Name)
	}
	if !slices.Equal(names, []string{"first", "second"}) {
		t.Errorf("got lines %q", names)
	}
}

// TestSources: the source tree has the folders, files and tests that the checks run.
func TestSources(t *testing.T) {
	root := filepath.Join("..", "..")
	for _, folder := range []string{codingPath, "pkg/codec/draco", "cmd/volpeer", "pkg/capture/realsense",
		"pkg/capture/realsense/rs2"} {
		if found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(folder), "*_test.go")); err != nil ||
			len(found) == 0 {
			t.Errorf("%s: no tests (%v)", folder, err)
		}
	}
	var text strings.Builder
	for _, name := range []string{"cmd/volpeer/tiling_test.go", "cmd/volpeer/realsense_test.go",
		"pkg/codec/draco/draco_test.go", "test/coding/overhead_test.go", "test/coding/tiles_test.go",
		"test/coding/descriptions_test.go"} {
		data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		text.Write(data)
	}
	for _, name := range []string{
		"TestDescriptionsMerge", "TestRealSenseArrives", "TestSteadyStateDoesNotAllocate", "TestAgainstReference",
		"TestOverhead", "TestTiles", "TestDescriptions",
	} {
		if !strings.Contains(text.String(), "func "+name+"(t ") {
			t.Errorf("%s is missing", name)
		}
	}
}

// TestWithoutSource: without a checkout, nothing is measured or claimed.
func TestWithoutSource(t *testing.T) {
	s := &sourced{folder: t.TempDir(), name: "tests", tests: suite.Part{Package: codingPath, Pattern: "."}}
	lines, err := s.run(t.Context())
	if err != nil || len(lines) != 1 || lines[0].Name != "tests" || !strings.Contains(lines[0].Skipped,
		"run this command in one") {
		t.Errorf("got %v, %v, want a line with the reason", lines, err)
	}
}

func TestWithoutDraco(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	s := &sourced{name: "tests", draco: true, tests: suite.Part{Package: codingPath, Pattern: "."}}
	lines, err := s.run(t.Context())
	if err != nil || len(lines) != 1 || !strings.Contains(lines[0].Skipped, "g++ is not installed") {
		t.Errorf("got %v, %v, want a line with the missing tool", lines, err)
	}
}

// TestProgramsAbsent: the folder of a test program does not contain volpeer.
func TestProgramsAbsent(t *testing.T) {
	for name, p := range map[string]part{"one publisher": newSustained(lab.Progress{}).run,
		"memory": newEndurance(1, lab.Progress{}).Run} {
		if _, err := p(t.Context()); !errors.Is(err, lab.ErrProgram) || !strings.Contains(err.Error(), "make build") {
			t.Errorf("%s: got %v, want ErrProgram and the advice", name, err)
		}
	}
}

func TestDataAbsent(t *testing.T) {
	nowhere := t.TempDir()
	for name, p := range map[string]part{"path": (&path{data: nowhere}).run, "colours": (&colors{data: nowhere}).run} {
		lines, err := p(t.Context())
		if err != nil || len(lines) != 1 || !strings.Contains(lines[0].Skipped, lab.TestDataVariable) {
			t.Errorf("%s: got %v, %v, want a skipped line and the variable to set", name, lines, err)
		}
	}
}

// script writes a program with a name into a folder.
func script(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestLacksDraco uses programs with Draco, without Draco, and with another failure.
func TestLacksDraco(t *testing.T) {
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skipf("skipped: %v", err)
	}
	for _, test := range []struct{ text, why, failure string }{
		{"echo table", "", ""},
		{"echo 'vollab: --codecs: codec not available: draco is not built in; build with CGO_ENABLED=1' >&2; exit 1",
			"vollab: draco is not built in; build with CGO_ENABLED=1", ""},
		{"echo 'vollab: out of memory' >&2; exit 1", "", "out of memory"},
	} {
		why, err := programs{vollab: script(t, "vollab", test.text)}.lacksDraco(t.Context())
		if why != test.why || (err == nil) != (test.failure == "") || err != nil &&
			!strings.Contains(err.Error(), test.failure) {
			t.Errorf("%s: got %q, %v", test.text, why, err)
		}
	}
}
