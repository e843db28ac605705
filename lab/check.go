package lab

import (
	"context"

	"github.com/volsfu/volsfu/test/claim"
)

// Check measures one claim.
type Check interface {
	// Name says in a few words what is measured.
	Name() string
	// Run measures. It returns the lines that it has even where an error kept it from finishing.
	Run(ctx context.Context) ([]claim.Line, error)
}
