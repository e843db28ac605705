// Package python has no code: its tests run the tests of the Python package, its examples, and its wheel.
package python

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/test/long"
	"github.com/volsfu/volsfu/test/program"
	"github.com/volsfu/volsfu/test/testbed"
)

func TestMain(m *testing.M) {
	status := program.Main(m)
	if built.folder != "" {
		_ = os.RemoveAll(built.folder)
	}
	os.Exit(status)
}

const (
	// buildTimeout allows for a machine that must compile everything and is busy.
	buildTimeout = 10 * time.Minute
	// generous is a time limit beyond any duration here.
	generous = 3 * time.Minute
)

// built is the library, which is built once for all tests.
var built struct {
	once         sync.Once
	folder, path string
	absent       string
	err          error
}

// library returns the path of the library. The test is skipped if the library cannot be built here.
func library(t *testing.T) string {
	t.Helper()
	built.once.Do(func() { built.err = buildLibrary() })
	if built.absent != "" {
		t.Skip("the Python package is not tested: " + built.absent)
	}
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.path
}

func buildLibrary() error {
	if runtime.GOOS != "linux" {
		built.absent = "its tests know the name of the library on Linux only"
		return nil
	}
	out, err := exec.Command("go", "env", "CGO_ENABLED", "CC").Output()
	if err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	enabled, compiler, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if _, err := exec.LookPath(compiler); enabled != "1" || err != nil {
		built.absent = "cgo is switched off, or there is no C compiler"
		return nil
	}
	if built.folder, err = os.MkdirTemp("", "volsfu-python-"); err != nil {
		return err
	}
	built.path = filepath.Join(built.folder, "libvolsfu.so")
	ctx, cancel := context.WithTimeout(context.Background(), buildTimeout)
	defer cancel()
	out, err = exec.CommandContext(ctx, "go", "build", "-buildmode=c-shared", "-tags", "portable",
		"-trimpath", "-buildvcs=false", "-o",
		built.path, "../c").CombinedOutput()
	if err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// interpreter returns a Python with NumPy. The test is skipped if there is none.
func interpreter(t *testing.T) string {
	t.Helper()
	own, err := filepath.Abs("../../.tools/python/bin/python")
	if err != nil {
		t.Fatal(err)
	}
	for _, candidate := range []string{own, "python3"} {
		if exec.Command(candidate, "-c", "import numpy").Run() == nil {
			return candidate
		}
	}
	t.Skip("the Python package is not tested: no Python has NumPy, which make deps installs into .tools/python")
	return ""
}

// run runs a command with more variables of the environment, and returns its output.
func run(t *testing.T, environment []string, name string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), generous)
	defer cancel()
	command := exec.CommandContext(ctx, name, args...)
	command.Env = append(os.Environ(), append(environment, "PYTHONDONTWRITEBYTECODE=1")...)
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	err := command.Run()
	if ctx.Err() != nil {
		err = errors.Join(ctx.Err(), err)
	}
	return out.String(), err
}

// open starts a server that ends with the test.
func open(t *testing.T) *testbed.Conference {
	t.Helper()
	c, err := testbed.NewConference(testbed.ConferenceConfig(), nil, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// environment returns the variables by which a program finds the package, the library and a server.
func environment(t *testing.T, server string) []string {
	t.Helper()
	source, err := filepath.Abs("src")
	if err != nil {
		t.Fatal(err)
	}
	return []string{"PYTHONPATH=" + source, "VOLSFU_LIBRARY=" + library(t), "VOLSFU_SERVER=" + server}
}

// TestPackage runs the tests in Python. The journal is one of volpeer.
func TestPackage(t *testing.T) {
	python := interpreter(t)
	variables := environment(t, open(t).Server.URL())
	journal := filepath.Join(t.TempDir(), "points.vol")
	if out, err := run(t, nil, program.Static().Path(t, "volpeer"), "record", "--source", "synthetic",
		"--points", "5000", "--output", journal, "--seconds", "1"); err != nil {
		t.Fatalf("volpeer record: %v\n%s", err, out)
	}
	out, err := run(t, append(variables, "VOLSFU_JOURNAL="+journal), python, "-m", "unittest", "discover", "-v", "test")
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if passed := strings.Count(out, "... ok\n"); passed < 10 {
		t.Errorf("%d tests passed, expected at least 10\n%s", passed, out)
	}
}

var pythonBlock = regexp.MustCompile("(?ms)^```python\n(.*?)^```$")

// TestReadme runs the examples of README.md, each in a process of its own: the publisher and the receiver together.
func TestReadme(t *testing.T) {
	python := interpreter(t)
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := pythonBlock.FindAllSubmatch(page, -1)
	if len(blocks) != 2 {
		t.Fatalf("README.md has %d examples, expected a publisher and a receiver", len(blocks))
	}
	server := open(t).Server.URL()
	variables := environment(t, server)
	var running sync.WaitGroup
	outputs := make([]string, len(blocks))
	failures := make([]error, len(blocks))
	for i, block := range blocks {
		source := strings.ReplaceAll(string(block[1]), "ws://127.0.0.1:8080", server)
		running.Go(func() { outputs[i], failures[i] = run(t, variables, python, "-c", source) })
	}
	running.Wait()
	for i := range blocks {
		if failures[i] != nil {
			t.Errorf("example %d: %v\n%s", i+1, failures[i], outputs[i])
		}
	}
	if !strings.Contains(outputs[1], "ada") || !strings.Contains(outputs[1], " points") {
		t.Errorf("the receiver printed %q, expected clouds of ada", outputs[1])
	}
}

// TestNotebook executes the notebook with a server and a publisher of volpeer, and looks for its picture.
func TestNotebook(t *testing.T) {
	long.Test(t)
	python := interpreter(t)
	if exec.Command(python, "-c", "import nbclient, ipykernel, matplotlib").Run() != nil {
		t.Skip("the notebook is not executed: its packages are missing, which make deps installs into .tools/python")
	}
	volpeer := program.Static().Path(t, "volpeer")
	server := open(t).Server.URL()
	ctx, cancel := context.WithCancel(t.Context())
	publisher := exec.CommandContext(ctx, volpeer, "publish", "--server", server,
		"--room", "lab", "--identity", "ada", "--points", "5000", "--codec", "zstd")
	if err := publisher.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = publisher.Wait()
	})
	executed := filepath.Join(t.TempDir(), "layers.ipynb")
	out, err := run(t, append(environment(t, server), "VOLPEER="+volpeer, "VOLSFU_SECONDS=8",
		"VOLSFU_ROOM=lab"), python, "test/execute.py", "examples/layers.ipynb", executed)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	result, err := os.ReadFile(executed)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(result, []byte(`"image/png"`)) {
		t.Errorf("the executed notebook has no picture:\n%s", result)
	}
}

// TestWheel builds the wheel and installs it into an empty environment, in which it is imported and encodes.
func TestWheel(t *testing.T) {
	long.Test(t)
	python := interpreter(t)
	if exec.Command(python, "-c", "import setuptools.command.bdist_wheel, venv").Run() != nil {
		t.Skip("the wheel is not built: setuptools is missing, which make deps installs into .tools/python")
	}
	folder := t.TempDir()
	if out, err := run(
		t, []string{"PYTHON=" + python}, "../../scripts/wheel.sh", "1.2.3", folder, library(t)); err != nil {
		t.Fatalf("scripts/wheel.sh: %v\n%s", err, out)
	}
	wheels, err := filepath.Glob(filepath.Join(folder, "volsfu-1.2.3-py3-none-*.whl"))
	if err != nil || len(wheels) != 1 {
		t.Fatalf("%v: %d wheels, expected one", err, len(wheels))
	}
	installed := filepath.Join(folder, "installed")
	if out, err := run(t, nil, python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target",
		installed, wheels[0]); err != nil {
		t.Fatalf("pip install: %v\n%s", err, out)
	}
	out, err := run(t, []string{"PYTHONPATH=" + installed, "VOLSFU_LIBRARY="}, python, "-c",
		"import volsfu; print(volsfu.__file__, len(volsfu.encode(volsfu.Cloud([[0, 0, 0], [1, 1, 1]]))) > 0)")
	if err != nil || !strings.Contains(out, installed) || !strings.Contains(out, "True") {
		t.Errorf("%v: %s", err, out)
	}
}
