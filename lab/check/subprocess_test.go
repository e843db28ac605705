package check

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/claim"
)

// shell returns a program that runs a script. $2 of the script is the number of the check.
func shell(script string) subprocess {
	return subprocess{program: "/bin/sh", arguments: []string{"-c", script, "check"}, said: &bytes.Buffer{}}
}

func TestMeasureInSubprocess(t *testing.T) {
	tests := []struct {
		name, script            string
		met, missed, skipped    int
		incomplete              bool
		line, sectionError, say string
	}{
		{name: "a report", script: `echo said >&2; echo '{"sections":[{"number":'$2',"name":"n","lines":[
			{"name":"l","figure":1,"target":"≥ 1","met":true},
			{"name":"m","figure":0,"target":"≥ 1","met":false},{"name":"s","skipped":"no data"}]}]}'; exit 1`,
			met: 1, missed: 1, skipped: 1, incomplete: true, line: "l", say: "said"},
		{name: "a check that failed", script: `echo '{"sections":[{"number":7,"name":"n","error":"broken"}]}'; exit 1`,
			missed: 1, sectionError: "broken"},
		{name: "a panic", script: `printf 'measuring\npanic: fire\n' >&2; exit 2`, missed: 1,
			sectionError: "exit status 2; last output: panic: fire"},
		{name: "a signal", script: `kill -9 $$`, missed: 1, sectionError: "signal: killed"},
		{name: "no output", script: `exit 0`, missed: 1, sectionError: "exit status 0; last output: nothing"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			report, program := lab.NewReport("trial", "v"), shell(test.script)
			program.measure(context.Background(), report, 7, known{claim.Skip("known", "")}, lab.Progress{})
			if len(report.Sections) != 1 || report.Sections[0].Number != 7 {
				t.Fatalf("sections %+v, expected one of check 7", report.Sections)
			}
			got := fmt.Sprint(report.Met, report.Missed, report.Skipped, report.Incomplete)
			if want := fmt.Sprint(test.met, test.missed, test.skipped, test.incomplete); got != want {
				t.Errorf("met, missed, skipped, incomplete: %s, expected %s", got, want)
			}
			section := report.Sections[0]
			if !strings.Contains(section.Error, test.sectionError) ||
				(section.Error == "") != (test.sectionError == "") {
				t.Errorf("error %q, expected %q in it", section.Error, test.sectionError)
			}
			if test.line != "" && (len(section.Lines) == 0 || section.Lines[0].Name != test.line) {
				t.Errorf("lines %v, expected %q first", section.Lines, test.line)
			}
			if said := program.said.(*bytes.Buffer).String(); !strings.Contains(said, test.say) {
				t.Errorf("said %q, expected %q in it", said, test.say)
			}
		})
	}
}

// onWrite is a writer that calls a function.
type onWrite func()

// Write implements io.Writer.
func (f onWrite) Write(text []byte) (int, error) {
	f()
	return len(text), nil
}

// TestMeasureInSubprocessInterrupted: an interrupted check makes the report incomplete and misses no target.
func TestMeasureInSubprocessInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	report := lab.NewReport("trial", "v")
	program := shell(`trap 'exit 2' TERM; echo measuring >&2; while :; do sleep 0.05; done`)
	program.said = onWrite(cancel)
	program.measure(ctx, report, 1, known{claim.Skip("known", "")}, lab.Progress{})
	if !report.Incomplete || report.Missed != 0 {
		t.Errorf("incomplete %v with %d missed, expected an incomplete report without missed targets",
			report.Incomplete, report.Missed)
	}
}
