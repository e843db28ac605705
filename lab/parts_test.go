package lab

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/volsfu/volsfu/test/claim"
)

// TestParts: a part that cannot be measured is skipped, and an error of a part does not end the others.
func TestParts(t *testing.T) {
	broken, unable := errors.New("broken"), errors.New("unable")
	met := claim.AtLeast("met", 2, "", 1)
	const bench = 7
	part := func(err error, lines ...claim.Line) Measurement[int] {
		return func(_ context.Context, got int) ([]claim.Line, error) {
			if got != bench {
				t.Errorf("measured with %d, expected %d", got, bench)
			}
			return lines, err
		}
	}
	check := func(parts ...Measurement[int]) *Parted[int] {
		return &Parted[int]{"name", bench, parts, "no parts", []error{errors.ErrUnsupported, unable}}
	}
	for name, test := range map[string]struct {
		check   *Parted[int]
		lines   int
		skipped string
		failed  error
	}{
		"both":      {check(part(nil, met), part(nil, met)), 2, "", nil},
		"unable":    {check(part(fmt.Errorf("attach: %w", unable)), part(nil, met)), 2, "attach: unable", nil},
		"failed":    {check(part(broken, met), part(nil, met)), 2, "", broken},
		"no figure": {check(part(ErrUnable)), 1, ErrUnable.Error(), nil},
		"no parts":  {check(), 1, "no parts", nil},
	} {
		lines, err := test.check.Run(t.Context())
		if len(lines) != test.lines || !errors.Is(err, test.failed) || lines[0].Skipped != test.skipped {
			t.Errorf("%s: got %v, %v, expected %d lines, the first skipped with %q, and the error %v", name, lines, err,
				test.lines, test.skipped, test.failed)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := check(part(nil, met)).Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, expected that the check was cancelled", err)
	}
}
