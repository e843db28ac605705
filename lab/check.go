package lab

import (
	"context"

	"github.com/volsfu/volsfu/test/claim"
)

// Check measures one claim.
type Check interface {
	// Name describes the measurement in a few words.
	Name() string
	// Run measures. Lines that exist when an error ends the measurement early are returned with the error.
	Run(ctx context.Context) ([]claim.Line, error)
}
