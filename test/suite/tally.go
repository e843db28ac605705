package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
)

// event is one line of `go test -json`, see `go doc test2json` and `go help buildjson`.
type event struct {
	Action      string
	Package     string
	ImportPath  string // instead of Package, on build events
	Test        string
	Elapsed     float64 // seconds
	Output      string
	FailedBuild string // the ImportPath of the build that made this package fail
	Time        time.Time

	note string // of the invocation
}

// tally counts tests and subtests. A package that fails without a failed test (the build fails, code outside a test
// panics, or the tests run too long) counts as one failure.
type tally struct {
	passed, failed int
	skipped        int
	failures       []string                 // names of failures
	skips          map[string][]skippedTest // by reason
	durations      []testDuration           // of tests, without their subtests
	spans          []span                   // of packages, as they ended
	builds         map[string]*strings.Builder
	packages       map[string]*packageRun
}

// skippedTest is a test, or a subtest, by the import path of the package.
type skippedTest struct{ importPath, test string }

func (s skippedTest) String() string { return shortName(s.importPath) + "." + s.test }

// testDuration is the duration of one test.
type testDuration struct {
	name    string
	seconds float64
}

// span is the time in which the tests of a package ran.
type span struct {
	importPath   string
	began, ended time.Time
}

// packageRun is a package whose tests are running.
type packageRun struct {
	began                   time.Time
	output                  strings.Builder // outside any test
	order                   []string        // unfinished and failed tests, as they started
	tests                   map[string]*testRun
	passed, failed, skipped int
}

// testRun is a test that is running or has failed.
type testRun struct {
	output strings.Builder
	failed bool
}

func newTally() *tally {
	return &tally{
		skips:    make(map[string][]skippedTest),
		builds:   make(map[string]*strings.Builder),
		packages: make(map[string]*packageRun),
	}
}

// ok reports whether tests ran and none failed.
func (t *tally) ok() bool { return t.failed == 0 && t.passed > 0 }

// readEvents passes the events of one `go test -json` to each. A line of output of the Go command itself becomes an
// event without an action.
func readEvents(r io.Reader, each func(event)) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil || e.Action == "" {
				e = event{Output: strings.TrimSuffix(string(line), "\n")}
			}
			each(e)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// add adds an event, and prints to w the result of a package that has finished.
func (t *tally) add(e event, w io.Writer) {
	switch {
	case e.Action == "":
		fmt.Fprintln(w, e.Output)
	case e.Action == "build-output":
		if t.builds[e.ImportPath] == nil {
			t.builds[e.ImportPath] = new(strings.Builder)
		}
		t.builds[e.ImportPath].WriteString(e.Output)
	case e.Package == "":
	case e.Test == "":
		t.addOfPackage(e, w)
	default:
		t.addOfTest(e)
	}
}

func (t *tally) of(name string) *packageRun {
	p := t.packages[name]
	if p == nil {
		p = &packageRun{tests: make(map[string]*testRun)}
		t.packages[name] = p
	}
	return p
}

func (t *tally) addOfTest(e event) {
	p := t.of(e.Package)
	test := p.tests[e.Test]
	if test == nil {
		test = new(testRun)
		p.tests[e.Test] = test
		p.order = append(p.order, e.Test)
	}
	if e.Elapsed > 0 && !strings.Contains(e.Test, "/") {
		t.durations = append(t.durations, testDuration{shortName(e.Package) + "." + e.Test, e.Elapsed})
	}
	switch e.Action {
	case "output":
		if !isFraming(e.Output) {
			test.output.WriteString(e.Output)
		}
	case "pass":
		p.passed++
		p.forget(e.Test)
	case "skip":
		p.skipped++
		reason := skipReason(test.output.String())
		t.skips[reason] = append(t.skips[reason], skippedTest{e.Package, e.Test})
		p.forget(e.Test)
	case "fail":
		p.failed++
		test.failed = true
		t.failures = append(t.failures, shortName(e.Package)+"."+e.Test)
	}
}

// takeUnraced removes the tests that were skipped because of the race detector from the skipped tests. The results are
// the import paths of the packages and the names of the tests, both sorted; a subtest counts as the test around it.
func (t *tally) takeUnraced() (importPaths, names []string) {
	for reason, tests := range t.skips {
		if !strings.Contains(reason, "race detector") {
			continue
		}
		for _, s := range tests {
			test, _, _ := strings.Cut(s.test, "/")
			importPaths, names = append(importPaths, s.importPath), append(names, test)
		}
		t.skipped -= len(tests)
		delete(t.skips, reason)
	}
	slices.Sort(importPaths)
	slices.Sort(names)
	return slices.Compact(importPaths), slices.Compact(names)
}

// unraced returns the lane of the tests that were skipped because of the race detector, and removes them from the
// skipped tests.
func (t *tally) unraced(flags []string) lane {
	paths, names := t.takeUnraced()
	if len(paths) == 0 {
		return nil
	}
	return lane{{flags: append(flags, "-run="+anyOf(names)), paths: paths, note: ", without the race detector"}}
}

// forget drops the output of a test, which is no longer needed. The last test started is the likeliest to have
// finished.
func (p *packageRun) forget(test string) {
	delete(p.tests, test)
	for i := len(p.order) - 1; i >= 0; i-- {
		if p.order[i] == test {
			p.order = slices.Delete(p.order, i, i+1)
			return
		}
	}
}

func (t *tally) addOfPackage(e event, w io.Writer) {
	p := t.of(e.Package)
	switch e.Action {
	case "start":
		p.began = e.Time
		return
	case "output":
		p.output.WriteString(e.Output)
		return
	case "pass", "skip":
	case "fail":
		if p.failed == 0 {
			p.failed = 1
			t.failures = append(t.failures, shortName(e.Package)+" (outside its tests)")
		}
	default:
		return
	}
	t.passed += p.passed
	t.failed += p.failed
	t.skipped += p.skipped
	if !p.began.IsZero() {
		t.spans = append(t.spans, span{e.Package, p.began, e.Time})
	}
	t.printPackage(w, e, p)
	delete(t.packages, e.Package)
}

// isFraming reports whether a line of output only names the running test. The output of tests never begins like this.
func isFraming(line string) bool {
	for _, prefix := range []string{"=== RUN", "=== PAUSE", "=== CONT", "=== NAME"} {
		if strings.HasPrefix(line, prefix) {
			return true
		}
	}
	return false
}

var logLine = regexp.MustCompile(`(?m)^\s*[^\s:]+\.go:\d+: (.*)$`)

// skipReason returns the last line that a skipped test logged.
func skipReason(output string) string {
	lines := logLine.FindAllStringSubmatch(output, -1)
	if len(lines) == 0 {
		return "no reason given"
	}
	return strings.TrimPrefix(strings.TrimSpace(lines[len(lines)-1][1]), "skipped: ")
}

// shortName returns a package's import path without host, owner and module.
func shortName(importPath string) string {
	if parts := strings.SplitN(importPath, "/", 4); len(parts) == 4 {
		return parts[3]
	}
	return importPath
}
