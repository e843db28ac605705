// Suite runs the repository's tests for `make test` and `make test-long`: every Go test with the race detector, the
// tests of whole programs one package at a time after all others, because each needs the whole machine. Tests that skip
// themselves because of the race detector run again without the detector, beside the tests of whole programs. Then
// every native fuzz test runs for a short while. With -long, only the tests that call long.Test run, otherwise all
// others. All tests of a run share the programs that they build (package program).
//
// Suite prints a line per package, the whole output of each failed test, the skipped tests with reasons, the slowest
// tests, and the closing line "N passed, N failed, N skipped". The status is 1 if a test failed or no test ran.
//
// All state belongs to the main goroutine.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/volsfu/volsfu/test/program"
)

// testdataVariable names the environment variable with the folder of real captures that some tests need.
const testdataVariable = "VOLSFU_TESTDATA"

type options struct {
	patterns   []string
	tests      bool
	long       bool
	fuzzTime   time.Duration // of one fuzz test; 0 runs none
	fuzzBudget time.Duration // of all fuzz tests together; 0 means no limit
	timeout    time.Duration // of one package
	slowest    int           // number of the slowest tests to list
	timeline   string        // file of the times at which packages began and ended, empty for none
}

func main() {
	var o options
	flag.BoolVar(&o.tests, "tests", true, "run the tests; without, only the fuzz tests run")
	flag.BoolVar(&o.long, "long", false, "run the long tests and no others")
	flag.DurationVar(&o.fuzzTime, "fuzztime", 2*time.Second, "how long each fuzz test runs, 0 for not at all")
	flag.DurationVar(&o.fuzzBudget, "fuzzbudget", 3*time.Minute,
		"how long all fuzz tests run together at most, 0 for no limit")
	flag.DurationVar(&o.timeout, "timeout", 10*time.Minute, "how long the tests of one package may take")
	flag.IntVar(&o.slowest, "slowest", 10, "how many of the slowest tests are named")
	flag.StringVar(&o.timeline, "timeline", "", "the file for the times at which the tests of each package began and ended")
	flag.Parse()
	o.patterns = flag.Args()
	if len(o.patterns) == 0 {
		o.patterns = []string{"./..."}
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := run(ctx, o, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
	}
	if !ok || err != nil {
		os.Exit(1)
	}
}

// run runs the tests that the options select, reports to w, and returns whether all passed.
func run(ctx context.Context, o options, w io.Writer) (bool, error) {
	module, err := goOutput(ctx, "env", "GOMOD")
	if err != nil {
		return false, err
	}
	if err := findTestdata(filepath.Dir(strings.TrimSpace(module)), w); err != nil {
		return false, err
	}
	packages, err := listPackages(ctx, o.patterns)
	if err != nil {
		return false, err
	}

	programs, err := os.MkdirTemp("", "suite-programs-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(programs)
	if err := os.Setenv(program.FolderVariable, programs); err != nil {
		return false, err
	}
	started := time.Now()
	tally := newTally()
	if o.tests {
		if err := o.runTests(ctx, tally, w, packages); err != nil {
			return false, err
		}
	}
	if o.fuzzTime > 0 {
		if err := runFuzzTests(ctx, tally, w, packages, o.fuzzTime, o.fuzzBudget); err != nil {
			return false, err
		}
	}
	if ctx.Err() != nil {
		return false, errors.New("interrupted")
	}
	tally.report(w, time.Since(started), o.slowest)
	if o.timeline != "" {
		if err := tally.writeTimeline(o.timeline); err != nil {
			return false, err
		}
	}
	return tally.ok(), nil
}

// runTests runs the short or the long tests of the packages.
func (o *options) runTests(ctx context.Context, tally *tally, w io.Writer, packages []testPackage) error {
	selection := "-short"
	if o.long {
		found, names, err := longTests(packages)
		if err != nil {
			return fmt.Errorf("looking for long tests: %w", err)
		}
		packages, selection = found, "-run="+anyOf(names)
	}
	if err := endPromptly(); err != nil {
		return err
	}
	flags := func(more ...string) []string {
		return append([]string{"-timeout=" + o.timeout.String(), selection}, more...)
	}
	together, alone := splitByPlace(packages)
	// One package more than processors, because some tests wait.
	parallel := fmt.Sprintf("-p=%d", runtime.GOMAXPROCS(0)+1)
	if err := runLanes(ctx, tally, w, "tests that run together", lane{
		{flags: flags("-race", parallel), paths: importPaths(together)},
	}); err != nil {
		return err
	}
	// Tests of whole programs mostly wait, those that run without the race detector compute.
	if err := runLanes(ctx, tally, w, "tests of whole programs, and those without the race detector", lane{
		{flags: flags("-race", "-p=1"), paths: importPaths(alone)},
	}, tally.unraced(flags("-p=1"))); err != nil {
		return err
	}
	if rest := tally.unraced(flags("-p=1")); len(rest) > 0 {
		return runLanes(ctx, tally, w, "tests of whole programs without the race detector", rest)
	}
	return nil
}

// endPromptly makes programs with the race detector end 10 ms after their last line: by default they sleep for a second
// to detect races of goroutines that still run, which is longer than the tests of most packages take.
func endPromptly() error {
	const variable = "GORACE"
	if os.Getenv(variable) != "" {
		return nil
	}
	return os.Setenv(variable, "atexit_sleep_ms=10")
}

// findTestdata reports whether the real captures are available, and if so passes the absolute path to the tests: each
// runs in the folder of the tested package, where a relative path would be wrong.
func findTestdata(module string, w io.Writer) error {
	path := os.Getenv(testdataVariable)
	if path == "" {
		path = filepath.Join("..", "shared", "data")
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(module, path)
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		fmt.Fprintf(w, "test data: not found at %s, tests that need it are skipped; set %s\n", path, testdataVariable)
		return nil
	}
	fmt.Fprintf(w, "test data: %s\n", path)
	return os.Setenv(testdataVariable, path)
}

// light has the packages below test/ that do not need the whole machine: they start no browser and no network
// namespace, and measure nothing.
var light = []string{
	"architecture", "claim", "coding", "deploy", "docs", "exposition", "interop/oldpeer", "intruder", "lint", "suite",
	"testbed", "transcript",
}

// splitByPlace returns the packages that are tested in parallel, and those below test/ that are tested one at a time.
func splitByPlace(packages []testPackage) (together, alone []testPackage) {
	for _, p := range packages {
		_, below, found := strings.Cut(p.ImportPath, "/test/")
		if found && !slices.Contains(light, below) {
			alone = append(alone, p)
		} else {
			together = append(together, p)
		}
	}
	return together, alone
}
