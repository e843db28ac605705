package raster

import (
	"strconv"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/suite"
)

const (
	// browserSeconds is the time for which a page watches one person.
	browserSeconds = 30
	// browserPreparing is the time of building programs, starting a browser and joining, besides the measured time.
	browserPreparing = 10 * time.Minute
)

// inBrowser returns the check of decoding in headless Chromium. The tests of the source tree drive Chromium: the check
// runs a test with the Go command and reads the figures that the test logs.
func inBrowser(progress lab.Progress) lab.Check {
	return &suite.Tests{Progress: progress, Title: "headless Chromium watches a seated person", Parts: []suite.Part{{
		Package: "test/browser", Pattern: "^TestMeasureRasters$",
		Arguments: []string{"-measure", "-seconds", strconv.Itoa(browserSeconds)},
		Limit:     browserPreparing + browserSeconds*time.Second,
	}}}
}
