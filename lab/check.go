package lab

import (
	"context"

	"github.com/volsfu/volsfu/test/claim"
)

// Check measures one claim.
type Check interface {
	// Name describes the measurement in a few words.
	Name() string
	// Run measures. It returns the lines it has even if an error ended the measurement early.
	Run(ctx context.Context) ([]claim.Line, error)
}
