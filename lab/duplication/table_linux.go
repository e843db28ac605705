package duplication

import (
	"context"
	"fmt"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/experiment/claims"
	"github.com/volsfu/volsfu/test/claim"
)

// onTable returns the measurement of a check with the experiments of paper 003, whose runs take the time of the paper.
func onTable(check func(claims.Options, lab.Progress) lab.Check) measurement {
	return func(ctx context.Context, b *bench) ([]claim.Line, error) {
		if b.short {
			return nil, fmt.Errorf("%w: runs take a minute", lab.ErrUnable)
		}
		return check(b.options, b.progress).Run(ctx)
	}
}
