package trust

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"github.com/volsfu/volsfu/internal/netem/router"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/claim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestParts: a claim without a measurement and a part that cannot be measured are skipped, and an error of a part does
// not end the others.
func TestParts(t *testing.T) {
	broken := errors.New("broken")
	met := claim.AtLeast("met", 2, "", 1)
	part := func(err error, lines ...claim.Line) measurement {
		return func(context.Context, *bench) ([]claim.Line, error) { return lines, err }
	}
	for name, test := range map[string]struct {
		parts   []measurement
		lines   int
		skipped string
		failed  error
	}{
		"both":    {[]measurement{part(nil, met), part(nil, met)}, 2, "", nil},
		"without": {nil, 1, "there is no measurement for this system", nil},
		"unable": {[]measurement{part(fmt.Errorf("router: %w", router.ErrPrivileges)), part(nil, met)}, 2,
			"router: " + router.ErrPrivileges.Error(), nil},
		"failed":   {[]measurement{part(broken, met), part(nil, met)}, 2, "", broken},
		"no check": {[]measurement{part(errUnable)}, 1, errUnable.Error(), nil},
	} {
		lines, err := (&check{"name", &bench{}, test.parts}).Run(t.Context())
		if len(lines) != test.lines || !errors.Is(err, test.failed) || lines[0].Skipped != test.skipped {
			t.Errorf("%s: got %v, %v, expected %d lines, the first skipped with %q, and the error %v", name, lines, err,
				test.lines, test.skipped, test.failed)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (&check{"name", &bench{}, []measurement{part(nil, met)}}).Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, expected that the check was cancelled", err)
	}
}

// TestNumbers: the checks have the numbers of the claims, and every measurement belongs to a claim.
func TestNumbers(t *testing.T) {
	all := Checks(DefaultOptions(), lab.Progress{})
	if len(all) != 12 {
		t.Fatalf("%d checks, expected 12", len(all))
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
