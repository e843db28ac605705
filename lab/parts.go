package lab

import (
	"context"
	"errors"
	"slices"

	"github.com/volsfu/volsfu/test/claim"
)

// Part measures a part of a claim.
type Part func(context.Context) ([]claim.Line, error)

// RunParts measures the parts of a claim one after the other. A part whose error wraps one of unable cannot be measured
// on this machine: it is skipped with the reason, under the name of the claim. A part that fails does not keep the
// others from running.
func RunParts(ctx context.Context, name string, parts []Part, unable ...error) (lines []claim.Line, failed error) {
	for _, measure := range parts {
		more, err := measure(ctx)
		lines = append(lines, more...)
		if ctx.Err() != nil {
			return lines, ctx.Err()
		}
		if slices.ContainsFunc(unable, func(reason error) bool { return errors.Is(err, reason) }) {
			lines, err = append(lines, claim.Skip(name, err.Error())), nil
		}
		failed = errors.Join(failed, err)
	}
	return lines, failed
}
