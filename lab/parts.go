package lab

import (
	"context"
	"errors"
	"slices"

	"github.com/volsfu/volsfu/test/claim"
)

// Measurement measures a part of a claim in an environment.
type Measurement[Bench any] func(context.Context, Bench) ([]claim.Line, error)

// Parted is a check of one claim whose parts are measured one after the other. Parted implements Check.
type Parted[Bench any] struct {
	// Title is the name of the check.
	Title string
	// Bench is the environment of all parts.
	Bench Bench
	Parts []Measurement[Bench]
	// Missing is the reason why a claim without parts is not measured.
	Missing string
	// Unable lists errors of a machine on which a part cannot be measured, in addition to ErrUnable.
	Unable []error
}

// ErrUnable wraps the reason for which a machine cannot measure a part.
var ErrUnable = errors.New("cannot be measured here")

// Name implements Check.
func (c *Parted[Bench]) Name() string { return c.Title }

// Run implements Check. A part that this machine cannot measure is skipped with the reason, under the name of the
// claim. A part that fails does not keep the others from running.
func (c *Parted[Bench]) Run(ctx context.Context) (lines []claim.Line, failed error) {
	if len(c.Parts) == 0 {
		return []claim.Line{claim.Skip(c.Title, c.Missing)}, nil
	}
	for _, measure := range c.Parts {
		more, err := measure(ctx, c.Bench)
		lines = append(lines, more...)
		if ctx.Err() != nil {
			return lines, ctx.Err()
		}
		if c.unable(err) {
			lines, err = append(lines, claim.Skip(c.Title, err.Error())), nil
		}
		failed = errors.Join(failed, err)
	}
	return lines, failed
}

// unable reports whether the error is one of a machine on which a part cannot be measured.
func (c *Parted[Bench]) unable(err error) bool {
	return errors.Is(err, ErrUnable) ||
		slices.ContainsFunc(c.Unable, func(reason error) bool { return errors.Is(err, reason) })
}
