package interop

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/suite"
)

// TestChecks compares the checks with the existing packages of tests.
func TestChecks(t *testing.T) {
	checks := Checks(lab.Progress{})
	if len(checks) != 5 {
		t.Fatalf("there are %d checks, expected 5", len(checks))
	}
	for _, c := range checks {
		for _, part := range c.(*suite.Tests).Parts {
			if info, err := os.Stat(filepath.Join("..", "..", filepath.FromSlash(part.Package))); err != nil ||
				!info.IsDir() {
				t.Errorf("%s: %v", c.Name(), err)
			}
		}
	}
}
