package cluster

import (
	"context"

	"github.com/volsfu/volsfu/test/claim"
)

// viewers reports that the claim on 500 viewers is not measured.
func viewers(context.Context, *bench) ([]claim.Line, error) {
	return []claim.Line{claim.Skip("500 viewers with a fan-out of 2",
		"nodes send every copy themselves: there are no parents")}, nil
}
