package viewing

import (
	"testing"

	"github.com/volsfu/volsfu/lab"
)

func TestChecks(t *testing.T) {
	checks := Checks(DefaultOptions(), lab.NewProgress(nil))
	if len(checks) != 6 {
		t.Errorf("%d checks, expected 6", len(checks))
	}
}
