// Package viewing measures the claims about the pages for browsers. The tests of the source tree drive Chromium. A
// program cannot import tests, so each check runs tests with the Go command and reads the figures that the tests log. A
// check measures on the goroutine that calls Run.
package viewing

import (
	"strconv"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/suite"
)

// Options are the durations of measurements.
type Options struct {
	// Endurance is the time for which two people and the tab's memory are watched.
	Endurance time.Duration
}

// DefaultOptions returns the durations of the claims.
func DefaultOptions() Options { return Options{Endurance: 10 * time.Minute} }

const (
	testsPath = "test/browser"
	// preparing is the time of building programs, starting a browser and joining, besides the measured time.
	preparing = 10 * time.Minute
)

// Checks returns the checks of the pages, in the order of their numbers.
func Checks(o Options, progress lab.Progress) []lab.Check {
	check := func(title, pattern string, limit time.Duration, counted string, arguments ...string) *suite.Tests {
		return &suite.Tests{Progress: progress, Title: title, Parts: []suite.Part{
			{Package: testsPath, Pattern: pattern, Arguments: arguments, Limit: preparing + limit, Counted: counted},
		}}
	}
	seconds := strconv.Itoa(int(o.Endurance.Seconds()))
	return []lab.Check{
		check("viewer and console against a real server: joining, walking, choosing, publishing, tokens, a "+
			"lost network; nothing inline, no other host",
			"^Test(Viewer|Keyboard|Console|Tokens|NetworkLoss|Joins|Channels|Codecs|Immersion|Publishing|DepthCamera|"+
				"Voice|Addresses|Units)$",
			10*time.Minute, "tests of the pages passed", "-measure"),
		check("two people of 30,000 points at 30 frames per second", "^TestMeasureWatching$", o.Endurance, "",
			"-measure", "-seconds", seconds),
		check("prepared frames that are not decoded, on media lines and over data channels", "^TestMeasureCarrying$",
			4*time.Minute, "", "-measure"),
		check("looking at one of two people, then at the other", "^TestMeasureTurning$", 2*time.Minute, "", "-measure"),
		check("a cold load of the lobby, and a click", "^TestMeasureLoading$", time.Minute, "", "-measure"),
		check("hosts and resources that pages request", "^TestMeasureAsking$", 2*time.Minute, "", "-measure"),
	}
}
