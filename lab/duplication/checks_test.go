package duplication

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/experiment/claims"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestWithoutMeasurement: a claim that this system cannot measure is skipped.
func TestWithoutMeasurement(t *testing.T) {
	lines, err := newCheck("name", &bench{}, nil).Run(t.Context())
	if err != nil || len(lines) != 1 || lines[0].Skipped != "volnet needs Linux" {
		t.Errorf("got %v, %v, expected one skipped line", lines, err)
	}
}

// TestNumbers: the checks have the numbers of the claims.
func TestNumbers(t *testing.T) {
	all := Checks(claims.Options{}, lab.Progress{})
	if len(all) != 9 {
		t.Fatalf("%d checks, expected 9", len(all))
	}
	for i, c := range all {
		if c.Name() != titles[i] {
			t.Errorf("check %d is %q, expected %q", i+1, c.Name(), titles[i])
		}
	}
}
