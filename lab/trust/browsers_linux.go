package trust

import (
	"context"
	"time"

	"github.com/volsfu/volsfu/lab/suite"
	"github.com/volsfu/volsfu/test/claim"
)

// browsersTime bounds the tests of Chromium, with the time of building programs.
const browsersTime = 20 * time.Minute

// browsers measures encrypted frames between Chromium and Go on lossy links, and the states of pages with another key
// or none, with altered and repeated frames, and after a rotation. It needs a checkout with Go, Node and Chromium.
func browsers(ctx context.Context, b *bench) ([]claim.Line, error) {
	if b.short {
		// The tests of package browser run these tests, too.
		return nil, nil
	}
	tests := &suite.Tests{Progress: b.progress, Title: titles[5], Parts: []suite.Part{{
		Package: "test/browser", Pattern: "^Test(Encrypted(Room|Voice|WithGo)|MeasureEncrypted)$",
		Arguments: []string{"-measure"}, Limit: browsersTime, Counted: "tests of encrypted rooms in Chromium passed",
	}}}
	return tests.Run(ctx)
}
