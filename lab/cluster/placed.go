package cluster

import (
	"context"
	"time"

	"github.com/volsfu/volsfu/lab/suite"
	"github.com/volsfu/volsfu/test/claim"
)

// placed runs the simulation of placement.
func placed(ctx context.Context, b *bench) ([]claim.Line, error) {
	tests := &suite.Tests{Progress: b.progress, Title: "placement", Parts: []suite.Part{{
		Package: "internal/cluster/placement", Pattern: "^TestLoadIsEvenWithStaleReports$", Limit: 5 * time.Minute}}}
	return tests.Run(ctx)
}
