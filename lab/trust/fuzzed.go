package trust

import (
	"context"
	"path/filepath"

	"github.com/volsfu/volsfu/lab/fuzzing"
	"github.com/volsfu/volsfu/test/claim"
)

// fuzzed fuzzes the parsers of network bytes until they have had as many inputs as the claim states.
func fuzzed(ctx context.Context, b *bench) ([]claim.Line, error) {
	o := b.options.Fuzz
	if o.State != "" {
		// Tests run in the folders of their packages.
		path, err := filepath.Abs(o.State)
		if err != nil {
			return nil, err
		}
		o.State = path
	}
	return fuzzing.Run(ctx, o, b.progress)
}
