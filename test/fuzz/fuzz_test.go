package fuzz

import (
	"errors"
	"strings"
	"testing"
)

// TestOutcomes reads the output of the testing package.
func TestOutcomes(t *testing.T) {
	const (
		progress = "fuzz: elapsed: 0s, gathering baseline coverage: 0/2 completed\n" +
			"fuzz: elapsed: 1s, execs: 5 (5/sec), new interesting: 0 (total: 2)\n" +
			"fuzz: elapsed: 2s, execs: 90000 (45000/sec), new interesting: 0 (total: 2)\n"
		ended = progress + "--- FAIL: FuzzA (2.04s)\n    context deadline exceeded\nFAIL\n"
	)
	failed := errors.New("exit status 1")
	tests := []struct {
		name, output string
		status       error
		inputs       int64
		failed       bool
	}{
		{"passed", progress + "PASS\n", nil, 90000, false},
		{"time ended", ended, failed, 90000, false},
		{"failing input", "--- FAIL: FuzzA (0.52s)\n    --- FAIL: FuzzA (0.00s)\n        a_test.go:4: crash\n    \n" +
			"    Failing input written to testdata/fuzz/FuzzA/1\nFAIL\n", failed, 0, true},
		{"both", "Failing input written to testdata/fuzz/FuzzA/1\n" + ended, failed, 90000, true},
		{"the test's own deadline", "--- FAIL: FuzzA (0.52s)\n    --- FAIL: FuzzA (0.00s)\n" +
			"        a_test.go:4: context deadline exceeded\nFAIL\n", failed, 0, true},
		{"killed", progress, errors.New("signal: killed"), 90000, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := outcomeOf(test.output, test.status)
			if got.Inputs != test.inputs || (got.Failure != "") != test.failed {
				t.Errorf("got %+v, expected %d inputs and failed %t", got, test.inputs, test.failed)
			}
			if test.failed && !strings.Contains(got.Failure, test.status.Error()) {
				t.Errorf("the failure has no status: %q", got.Failure)
			}
		})
	}
}
