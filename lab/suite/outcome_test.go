package suite

import (
	"errors"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/test/claim"
)

// transcript is the output of the Go command for a package in which one test passes, one fails in a part, and one is
// skipped.
const transcript = `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestGood"}
{"Action":"output","Package":"p","Test":"TestGood","Output":"=== RUN   TestGood\n"}
` + `{"Action":"output","Package":"p","Test":"TestGood",` +
	`"Output":"    a_test.go:5: figure: {\"name\":\"lost\",\"figure\":0,\"target\":\"= 0\",\"met\":true}\n"}
{"Action":"pass","Package":"p","Test":"TestGood","Elapsed":0.1}
` + `{"Action":"output","Package":"p","Test":"TestBad/part","Output":"    a_test.go:9: figure: ` +
	`{\"name\":\"slow\",\"figure\":3,\"unit\":\"ms\",\"target\":\"≤ 2\",\"met\":false}\n"}
{"Action":"output","Package":"p","Test":"TestBad/part","Output":"    a_test.go:9: slow: 3 ms\n"}
{"Action":"fail","Package":"p","Test":"TestBad/part","Elapsed":0.1}
{"Action":"output","Package":"p","Test":"TestBad","Output":"--- FAIL: TestBad (0.10s)\n"}
{"Action":"fail","Package":"p","Test":"TestBad","Elapsed":0.1}
{"Action":"output","Package":"p","Test":"TestRoot","Output":"    b_test.go:50: skipped: a namespace takes root\n"}
{"Action":"output","Package":"p","Test":"TestRoot","Output":"--- SKIP: TestRoot (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestRoot","Elapsed":0}
{"Action":"output","Package":"p","Output":"FAIL\n"}
{"Action":"fail","Package":"p","Elapsed":0.3}
`

func TestOutcome(t *testing.T) {
	o := newOutcome()
	var told []string
	if err := o.read(strings.NewReader(transcript), func(l claim.Line) { told = append(told, l.Name) }); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range o.lines("tests that hold") {
		got = append(got, l.String())
	}
	want := []string{
		"tests that hold: 1 (target = 3: MISSED)", "lost: 0 (target = 0: met)", "slow: 3 ms (target ≤ 2: MISSED)",
		"TestRoot: skipped: a namespace takes root",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") || strings.Join(told, " ") != "lost slow" {
		t.Errorf("lines are\n%s\nand told was %v, expected\n%s", strings.Join(got, "\n"), told,
			strings.Join(want, "\n"))
	}
	if err := o.failure(errors.New("exit status 1"), "left over"); !errors.Is(err, errFailed) ||
		!strings.Contains(err.Error(), "1 of 2 failed:\n") ||
		!strings.Contains(err.Error(), "a_test.go:9: slow: 3 ms") || !strings.HasSuffix(err.Error(), "left over") {
		t.Errorf("failure is %v", err)
	}
}

// TestOutcomeWithoutTests covers packages that do not compile, missing packages, and packages without tests.
func TestOutcomeWithoutTests(t *testing.T) {
	failed := errors.New("exit status 1")
	tests := map[string]struct {
		said   string
		status error
		want   string
	}{
		"does not compile": {
			`{"ImportPath":"p","Action":"build-output","Output":"./x_test.go:3:1: syntax error\n"}` + "\n" +
				`{"ImportPath":"p","Action":"build-fail"}` + "\n" +
				`{"Action":"fail","Package":"p","Elapsed":0,"FailedBuild":"p"}`, failed,
			"./x_test.go:3:1: syntax error"},
		"is missing":   {"stat /nowhere: directory not found", failed, "stat /nowhere: directory not found"},
		"has no tests": {`{"Action":"pass","Package":"p","Elapsed":0}`, nil, errNone.Error()},
		"ended by a panic": {
			`{"Action":"output","Package":"p","Test":"TestGood","Output":"fine\n"}` + "\n" +
				`{"Action":"output","Package":"p","Test":"TestHeld","Output":"panic: fire\n"}` + "\n" +
				`{"Action":"fail","Package":"p","Elapsed":0}`, failed, "panic: fire"},
		"has failed": {`{"Action":"fail","Package":"p","Elapsed":0}`, failed, "exit status 1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := newOutcome()
			if err := o.read(strings.NewReader(test.said), func(claim.Line) {}); err != nil {
				t.Fatal(err)
			}
			if err := o.failure(test.status, ""); err == nil || !strings.Contains(err.Error(), test.want) ||
				len(o.lines("tests that hold")) > 0 {
				t.Errorf("failure is %v, expected one with %q, and %d lines, expected none", err, test.want,
					len(o.lines("tests that hold")))
			}
		})
	}
}

// TestSkipsAreNoFailure: tests without a measurement are no failure and meet no target.
func TestSkipsAreNoFailure(t *testing.T) {
	o := newOutcome()
	o.take(event{Action: "skip", Test: "TestRoot"})
	lines := o.lines("tests that hold")
	if err := o.failure(nil, ""); err != nil || len(lines) != 1 || lines[0].Skipped != "no reason was logged" ||
		lines[0].Target != "" {
		t.Errorf("got %+v, %v", lines, err)
	}
}

// TestKeptOutput: output beyond keptOutput lines is dropped.
func TestKeptOutput(t *testing.T) {
	o := newOutcome()
	for range 10 * keptOutput {
		o.take(event{Action: "output", Test: "TestTalkative", Output: "and so on\n"})
	}
	if n := len(o.said["TestTalkative"]); n != keptOutput {
		t.Errorf("%d lines are kept, expected %d", n, keptOutput)
	}
}

// FuzzOutcome reads any output.
func FuzzOutcome(f *testing.F) {
	f.Add([]byte(transcript))
	f.Add([]byte("{}\n{\"Action\":\"output\"}\nFAIL p [build failed]\n"))
	f.Fuzz(func(_ *testing.T, printed []byte) {
		o := newOutcome()
		_ = o.read(strings.NewReader(string(printed)), func(claim.Line) {})
		o.lines("tests")
		_ = o.failure(nil, "")
	})
}
