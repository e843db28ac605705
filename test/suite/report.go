package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// namesPerReason is the number of tests skipped for one reason that the report names: enough to find the place.
const namesPerReason = 3

// slowTest is the minimum duration in seconds of a test that the report names as slow.
const slowTest = 5

// printPackage prints the line of a package that has finished and, if it failed, the output of the package and of the
// failed tests.
func (t *tally) printPackage(w io.Writer, e event, p *packageRun) {
	if p.passed+p.failed+p.skipped == 0 {
		return // no tests
	}
	verdict := "ok"
	if p.failed > 0 {
		verdict = "FAIL"
	}
	fmt.Fprintf(w, "%-5s %6.1fs  %-40s %s%s\n", verdict, e.Elapsed, shortName(e.Package), p.counts(), e.note)
	if p.failed == 0 {
		return
	}
	if build := t.builds[e.FailedBuild]; build != nil {
		printIndented(w, build.String())
	}
	for _, name := range p.order {
		test := p.tests[name]
		if !test.failed {
			fmt.Fprintf(w, "    --- %s did not finish\n", name)
		}
		printIndented(w, test.output.String())
	}
	printIndented(w, p.output.String())
}

func (p *packageRun) counts() string {
	counts := fmt.Sprintf("%d passed", p.passed)
	if p.failed > 0 {
		counts += fmt.Sprintf(", %d failed", p.failed)
	}
	if p.skipped > 0 {
		counts += fmt.Sprintf(", %d skipped", p.skipped)
	}
	return counts
}

// report prints the failures, the skipped tests with reasons, and the closing line.
func (t *tally) report(w io.Writer, took time.Duration, slowest int) {
	fmt.Fprintln(w)
	if len(t.failures) > 0 {
		fmt.Fprintln(w, "failed:")
		for _, name := range t.failures {
			fmt.Fprintf(w, "  %s\n", name)
		}
	}
	reasons := make([]string, 0, len(t.skips))
	for reason := range t.skips {
		reasons = append(reasons, reason)
	}
	slices.Sort(reasons)
	for _, reason := range reasons {
		tests := t.skips[reason]
		var names []string
		for _, s := range tests[:min(len(tests), namesPerReason)] {
			names = append(names, s.String())
		}
		rest := ""
		if len(tests) > namesPerReason {
			rest = fmt.Sprintf(" and %d more", len(tests)-namesPerReason)
		}
		fmt.Fprintf(w, "skipped %d: %s\n  %s%s\n", len(tests), reason, strings.Join(names, ", "), rest)
	}
	t.printSlowest(w, slowest)
	if t.passed+t.failed+t.skipped == 0 {
		fmt.Fprintln(w, "no test ran")
	}
	fmt.Fprintf(w, "took %s\n", took.Round(time.Second))
	fmt.Fprintf(w, "%d passed, %d failed, %d skipped\n", t.passed, t.failed, t.skipped)
}

// printSlowest prints at most the given number of the slowest tests.
func (t *tally) printSlowest(w io.Writer, most int) {
	slices.SortStableFunc(t.durations, func(a, b testDuration) int { return cmp.Compare(b.seconds, a.seconds) })
	for i, d := range t.durations[:min(len(t.durations), most)] {
		if d.seconds < slowTest {
			break
		}
		if i == 0 {
			fmt.Fprintln(w, "slowest tests:")
		}
		fmt.Fprintf(w, "  %6.1fs  %s\n", d.seconds, d.name)
	}
}

// writeTimeline writes when the tests of each package began and ended, in seconds since the first, in the order of
// their begin.
func (t *tally) writeTimeline(path string) error {
	slices.SortStableFunc(t.spans, func(a, b span) int { return a.began.Compare(b.began) })
	var text strings.Builder
	for _, s := range t.spans {
		since := func(at time.Time) float64 { return at.Sub(t.spans[0].began).Seconds() }
		fmt.Fprintf(&text, "%7.1f %7.1f  %s\n", since(s.began), since(s.ended), shortName(s.importPath))
	}
	return os.WriteFile(path, []byte(text.String()), 0o644)
}

func printIndented(w io.Writer, text string) {
	text = strings.TrimRight(text, "\n")
	if text == "" {
		return
	}
	for line := range strings.SplitSeq(text, "\n") {
		fmt.Fprintf(w, "    %s\n", line)
	}
}
