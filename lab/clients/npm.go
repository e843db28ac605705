package clients

import (
	"context"
	"time"

	"github.com/volsfu/volsfu/lab/suite"
	"github.com/volsfu/volsfu/test/claim"
)

// packageTime bounds the test of the npm package, with the time of building it.
const packageTime = 10 * time.Minute

// npmPackage installs the npm package into an empty project, whose pages see each other and embed the viewer. It needs
// Go, Node and Chromium.
func npmPackage(ctx context.Context, b *bench) ([]claim.Line, error) {
	tests := &suite.Tests{Progress: b.progress, Title: "npm package",
		Parts: []suite.Part{{Package: "test/browser", Pattern: "^TestPackage$", Limit: packageTime}}}
	return tests.Run(ctx)
}
