package suite

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/volsfu/volsfu/test/claim"
)

// ErrTests is returned if tests failed or did not run.
var ErrTests = errors.New("tests")

// event is a line of the output of go test -json (cmd/internal/test2json).
type event struct {
	Action, Package, Test, Output string
}

// outcome is the result of a run of tests so far.
type outcome struct {
	figures []claim.Line
	// passed, failed and absent count top-level tests; absent tests were skipped. skipped has all tests that did not
	// run completely, with the reasons.
	passed, failed, absent int
	skipped                []claim.Line
	// said has the last lines of output of each running test. The empty name stands for the build.
	said map[string][]string
	// complaints are the output of failed tests.
	complaints []string
}

func newOutcome() *outcome { return &outcome{said: make(map[string][]string)} }

// keptOutput is the number of lines of each test that are kept for a failure.
const keptOutput = 40

// maxEvent bounds one line of the Go command. The longest lines have about a kilobyte, because the Go command splits
// the output of tests into pieces of that size.
const maxEvent = 1 << 20

// read reads the output of the Go command until the output ends. read passes each figure to tell immediately.
func (o *outcome) read(r io.Reader, tell func(claim.Line)) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxEvent)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			// A line that is no event is the Go command's own, for instance for a missing package.
			e = event{Action: "output", Output: lines.Text()}
		}
		if figure, ok := o.take(e); ok {
			tell(figure)
		}
	}
	return lines.Err()
}

// take processes an event and returns its figure.
func (o *outcome) take(e event) (figure claim.Line, ok bool) {
	if slices.Contains([]string{"pass", "fail", "skip"}, e.Action) && e.Test != "" {
		defer delete(o.said, e.Test)
	}
	switch e.Action {
	case "output", "build-output":
		text := strings.TrimRight(e.Output, "\n")
		if figure, ok = claim.ReadFigure(text); ok {
			o.figures = append(o.figures, figure)
		}
		o.said[e.Test] = append(o.said[e.Test], text)
		o.said[e.Test] = o.said[e.Test][max(0, len(o.said[e.Test])-keptOutput):]
	case "skip":
		if e.Test != "" {
			o.skipped = append(o.skipped, claim.Skip(e.Test, reason(o.said[e.Test])))
		}
		o.absent += topLevel(e.Test)
	case "fail":
		if e.Test != "" {
			o.complaints = append(o.complaints, o.said[e.Test]...)
		}
		o.failed += topLevel(e.Test)
	case "pass":
		o.passed += topLevel(e.Test)
	}
	return figure, ok
}

// topLevel returns 1 for a top-level test, and 0 for a subtest or a whole package.
func topLevel(test string) int {
	if test == "" || strings.Contains(test, "/") {
		return 0
	}
	return 1
}

// logPrefix is the prefix of a logged line by the testing package: the file and the number of its line.
var logPrefix = regexp.MustCompile(`^\s*\S+\.go:\d+: `)

// reason returns the reason of a skipped test: the last line that it logged.
func reason(said []string) string {
	for _, text := range slices.Backward(said) {
		if place := logPrefix.FindString(text); place != "" {
			return strings.TrimPrefix(text[len(place):], "skipped: ")
		}
	}
	return "no reason was logged"
}

// lines returns the figures, and a line for each skipped test. If the number of passed tests is a figure, this figure
// is first; its target is the number of all tests, including the skipped ones. If no test ran, nothing was measured.
func (o *outcome) lines(counted string) (lines []claim.Line) {
	if ran := o.passed + o.failed; counted != "" && ran > 0 {
		lines = append(lines, claim.Exactly(counted, int64(o.passed), "", int64(ran+o.absent)))
	}
	return slices.Concat(lines, o.figures, o.skipped)
}

// The reasons why a run of tests has failed.
var (
	errFailed = errors.New("failed")
	errNone   = errors.New("no test ran")
)

// failure returns the failures, nil for none. status is the status of the Go command, complaints its standard error.
func (o *outcome) failure(status error, complaints string) error {
	said := func(lines []string) string { return strings.Join(append(lines, complaints), "\n") }
	switch {
	case o.failed > 0:
		return fmt.Errorf("%d of %d %w:\n%s", o.failed, o.failed+o.passed, errFailed, said(o.complaints))
	case status != nil:
		// A test that has not ended may have ended the program, by a panic of another goroutine.
		return fmt.Errorf("%w:\n%s", status, said(slices.Concat(o.unended(), o.said[""])))
	case o.passed+len(o.skipped) == 0:
		return errNone
	}
	return nil
}

// unended returns the end of the output of each test that has begun and not ended, by name.
func (o *outcome) unended() (lines []string) {
	for _, name := range slices.Sorted(maps.Keys(o.said)) {
		if name != "" {
			lines = append(lines, o.said[name]...)
		}
	}
	return lines
}
