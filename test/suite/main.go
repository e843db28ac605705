// Suite runs the repository's tests for `make test` and `make test-long`: every Go test with the race detector, the
// tests of whole programs after all others, in groups at the same time. Tests that skip themselves because of the
// race detector run again without the detector, beside the tests of whole programs. Then every native fuzz test runs
// for a short while. With -long, only the tests that call long.Test run, otherwise all others. All tests of a run share
// the programs that they build (package program).
//
// Suite prints a line per package, the whole output of each failed test, the skipped tests with reasons, the slowest
// tests, and the closing line "N passed, N failed, N skipped". The status is 1 if a test failed or no test ran.
//
// All state belongs to the main goroutine.
package main

import (
	"cmp"
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

// packageTime ends the tests of a package that hang. On two idle cores the longest take 200 s of the short tests
// (test/browser) and 450 s of the long ones (lab/test/faults): a machine that is four times slower needs half an hour.
const packageTime = 45 * time.Minute

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
	flag.DurationVar(&o.timeout, "timeout", packageTime, "how long the tests of one package may take")
	flag.IntVar(&o.slowest, "slowest", 10, "how many of the slowest tests are named")
	flag.StringVar(&o.timeline, "timeline", "", "file for the times at which the tests of each package began and ended")
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
	together, groups := splitByPlace(packages)
	slowFirst(together)
	// Two packages more than processors, because some tests wait. Long tests measure, and get one more only.
	more := 2
	if o.long {
		more = 1
	}
	parallel := fmt.Sprintf("-p=%d", runtime.GOMAXPROCS(0)+more)
	if err := runLanes(ctx, tally, w, "tests that run together", lane{
		{flags: flags("-race", parallel), paths: importPaths(together)},
	}); err != nil {
		return err
	}
	// Tests of whole programs mostly wait, those that run without the race detector compute.
	lanes := []lane{tally.unraced(flags("-p=1"))}
	var last lane
	for i, group := range groups {
		l := lane{{flags: flags("-race", "-p=1"), paths: importPaths(group)}}
		if i == ofLab && o.long {
			last = l
			continue
		}
		lanes = append(lanes, l)
	}
	err := runLanes(ctx, tally, w, "tests of whole programs, and those without the race detector", lanes...)
	if err != nil {
		return err
	}
	if last = append(last, tally.unraced(flags("-p=1"))...); len(last) > 0 {
		return runLanes(ctx, tally, w, "tests that need the whole machine", last)
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

// light has the packages below test/ that do not start whole programs: they start no browser and no network namespace,
// and measure nothing.
var light = []string{
	"architecture", "claim", "coding", "deploy", "docs", "exposition", "interop/oldpeer", "intruder", "lint", "program",
	"suite", "testbed", "transcript",
}

// Groups of the packages below test/ that start whole programs. The long tests of the lab measure, and need the whole
// machine; the pages of the browser need a processor to draw.
const (
	ofLab = iota
	ofBrowser
	others
	groupCount
)

// splitByPlace returns the packages that are tested in parallel, and the groups of those below test/ that start whole
// programs. Within a group, packages are tested one at a time.
func splitByPlace(packages []testPackage) (together []testPackage, groups [groupCount][]testPackage) {
	for _, p := range packages {
		before, below, found := strings.Cut(p.ImportPath, "/test/")
		switch {
		case !found || slices.Contains(light, below):
			together = append(together, p)
		case strings.HasSuffix(before, "/lab"):
			groups[ofLab] = append(groups[ofLab], p)
		case below == "browser":
			groups[ofBrowser] = append(groups[ofBrowser], p)
		default:
			groups[others] = append(groups[others], p)
		}
	}
	return together, groups
}

// slow has the packages whose tests take 16 seconds or more, the slowest first: those with the longest long tests, and
// then the others.
var slow = []string{
	"lab/trust", "lab/clients", "lab/duplication", "lab/hotpath", "lab/raster", "test/docs", "clients/python",
	"lab/control", "internal/transport", "internal/netfn/edge/bpf", "lab/experiment/paper003", "internal/netfn/edge",
	"cmd/volpeer/internal/publish", "cmd/volpeer/internal/calibrate", "lab/adaptation", "internal/server", "lab/direct",
	"cmd/volnet",
}

// slowFirst moves the slow packages to the front, so that the others use the processors to the end.
func slowFirst(packages []testPackage) {
	place := func(p testPackage) int {
		if at := slices.Index(slow, shortName(p.ImportPath)); at >= 0 {
			return at
		}
		return len(slow)
	}
	slices.SortStableFunc(packages, func(a, b testPackage) int { return cmp.Compare(place(a), place(b)) })
}
