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
	part := func(err error, lines ...claim.Line) Part {
		return func(context.Context) ([]claim.Line, error) { return lines, err }
	}
	for name, test := range map[string]struct {
		parts   []Part
		lines   int
		skipped string
		failed  error
	}{
		"both":      {[]Part{part(nil, met), part(nil, met)}, 2, "", nil},
		"unable":    {[]Part{part(fmt.Errorf("attach: %w", unable)), part(nil, met)}, 2, "attach: unable", nil},
		"failed":    {[]Part{part(broken, met), part(nil, met)}, 2, "", broken},
		"no figure": {[]Part{part(unable)}, 1, "unable", nil},
	} {
		lines, err := RunParts(t.Context(), "name", test.parts, errors.ErrUnsupported, unable)
		if len(lines) != test.lines || !errors.Is(err, test.failed) || lines[0].Skipped != test.skipped {
			t.Errorf("%s: got %v, %v, expected %d lines, the first skipped with %q, and the error %v", name, lines, err,
				test.lines, test.skipped, test.failed)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := RunParts(ctx, "name", []Part{part(nil, met)}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, expected that the check was cancelled", err)
	}
}
