package trust

import (
	"context"

	"github.com/volsfu/volsfu/lab/suite"
	"github.com/volsfu/volsfu/test/claim"
)

// encoders sends a picture and a tone from ffmpeg by WHIP, and plays them in Chromium by WHEP. It needs a checkout with
// Go, Node, Chromium, and an ffmpeg with WHIP.
func encoders(ctx context.Context, b *bench) ([]claim.Line, error) {
	if b.short {
		// The tests of package browser run this test, too.
		return nil, nil
	}
	tests := &suite.Tests{Progress: b.progress, Title: titles[8], Parts: []suite.Part{{
		Package: "test/browser", Pattern: "^TestWHIPInChromium$", Arguments: []string{"-measure"}, Limit: browsersTime,
		Counted: "tests of WHIP and WHEP passed",
	}}}
	return tests.Run(ctx)
}
