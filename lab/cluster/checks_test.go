package cluster

import (
	"strings"
	"testing"

	"github.com/volsfu/volsfu/lab"
)

// TestNumbers: the checks have the numbers of the claims, and every measurement belongs to a claim.
func TestNumbers(t *testing.T) {
	all := Checks(Options{}, lab.Progress{})
	if len(all) != 14 {
		t.Fatalf("%d checks, expected 14", len(all))
	}
	for i, c := range all {
		if c.Name() != titles[i] {
			t.Errorf("check %d is %q, expected %q", i+1, c.Name(), titles[i])
		}
	}
	for number := range measurements {
		if number < 1 || number > len(titles) {
			t.Errorf("a measurement of claim %d, expected 1 to %d", number, len(titles))
		}
	}
}

// TestWithoutMeasurement: a claim that this system cannot measure is skipped.
func TestWithoutMeasurement(t *testing.T) {
	lines, err := newCheck("name", &bench{}, nil).Run(t.Context())
	if err != nil || len(lines) != 1 || !strings.Contains(lines[0].Skipped, "no measurement") {
		t.Errorf("got %v, %v, expected one skipped line", lines, err)
	}
}
