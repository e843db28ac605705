// Package viewing measures what is claimed of the pages for browsers. Chromium is driven by the tests of the source tree, which no program may import, so each check
// runs such tests by the Go command and reads the figures that they log. A check measures on the goroutine that calls Run.
package viewing

import (
	"strconv"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/suite"
)

// Options say how long to look.
type Options struct {
	// Endurance is how long two people are watched, and the tab's memory with them.
	Endurance time.Duration
}

// DefaultOptions look as long as the claims say.
func DefaultOptions() Options { return Options{Endurance: 10 * time.Minute} }

const (
	testsPath = "test/browser"
	// preparing is what building programs, starting a browser and joining take besides the time that is measured.
	preparing = 10 * time.Minute
)

// Checks are the checks of the pages, in the order of their numbers.
func Checks(o Options, progress lab.Progress) []lab.Check {
	check := func(title, pattern string, limit time.Duration, counted string, arguments ...string) *suite.Tests {
		return &suite.Tests{Progress: progress, Title: title, Parts: []suite.Part{
			{Package: testsPath, Pattern: pattern, Arguments: arguments, Limit: preparing + limit, Counted: counted},
		}}
	}
	seconds := strconv.Itoa(int(o.Endurance.Seconds()))
	return []lab.Check{
		check("viewer and console against a real server: joining, walking, choosing, showing oneself, tokens, a lost network; nothing inline, no other host",
			"^Test(Viewer|Keyboard|Console|Tokens|NetworkLoss|Joins|Channels|Codecs|Immersion|Publishing|DepthCamera|Voice|Addresses|Units)$",
			10*time.Minute, "tests of the pages that hold", "-measure"),
		check("two people of 30,000 points at 30 frames per second", "^TestMeasureWatching$", o.Endurance, "", "-measure", "-seconds", seconds),
		check("prepared frames that nobody decodes, on media lines and over data channels", "^TestMeasureCarrying$", 4*time.Minute, "", "-measure"),
		check("looking at one of two people, then at the other", "^TestMeasureTurning$", 2*time.Minute, "", "-measure"),
		check("a cold load of the lobby, and a click", "^TestMeasureLoading$", time.Minute, "", "-measure"),
		check("what pages ask for, and of whom", "^TestMeasureAsking$", 2*time.Minute, "", "-measure"),
	}
}
