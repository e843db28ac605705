package pipeline

import (
	"context"
	"errors"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/suite"
	"github.com/volsfu/volsfu/test/claim"
)

// Options are the durations of long measurements.
type Options struct {
	// Endurance is the time during which memory is watched.
	Endurance time.Duration
}

// DefaultOptions returns the options of the claims.
func DefaultOptions() Options { return Options{Endurance: 10 * time.Minute} }

// full makes tests measure as claimed, with targets for times.
const full = "-full"

// codingPath is the folder of the tests that measure with Draco.
const codingPath = "test/coding"

// sceneSeconds is the duration of checks that count frames.
const sceneSeconds = 20

// Checks returns the checks of capture and coding, in the order of their numbers.
func Checks(options Options, progress lab.Progress) []lab.Check {
	coding := func(pattern string) part {
		return (&sourced{progress: progress, name: "measured with Draco", draco: true,
			tests: suite.Part{Package: codingPath, Pattern: pattern, Arguments: []string{full},
				Limit: 10 * time.Minute}}).run
	}
	holding := func(pkg, pattern, counted string, draco bool) part {
		return (&sourced{progress: progress, name: counted, draco: draco,
			tests: suite.Part{Package: pkg, Pattern: pattern, Limit: 5 * time.Minute, Counted: counted}}).run
	}
	data := lab.TestData()
	return []lab.Check{
		&check{"Draco from Go: the cost of calls, copies, allocations", []part{
			coding("^TestOverhead$"),
			holding("pkg/codec/draco", "^(TestSteadyStateDoesNotAllocate|TestAgainstReference)$",
				"tests passed: no allocations, the same bytes as Draco", true),
		}},
		&check{"100,000 points in 4 tiles on 2 processors; one publisher of 60,000, 30,000 and 15,000 points at 30 fps",
			[]part{
				coding("^TestTiles$"),
				newSustained(progress).run,
			}},
		&check{"depth and colours of a seated person at 30 fps: to a cloud, and to decoded at a watcher", []part{
			(&path{progress: progress, data: data, seconds: sceneSeconds}).run,
		}},
		&check{"colours as JPEG compared with quantised colours, at equal loss", []part{
			(&colors{progress: progress, data: data, repeats: 3}).run,
		}},
		&check{"descriptions of 60, 25 and 15 %", []part{
			coding("^TestDescriptions$"),
			holding("cmd/volpeer", "^TestDescriptionsMerge$",
				"tests passed: watchers of some and of all descriptions", true),
		}},
		&check{"RealSense: the library with software cameras and recordings; a missing or other library", []part{
			holding("pkg/capture/realsense", ".", "tests passed: cameras and recordings", false),
			holding("pkg/capture/realsense/rs2", ".", "tests passed: the library, none, and other versions",
				false),
			holding("cmd/volpeer", "^TestRealSense", "tests passed: a recording's points at a watcher, and flags",
				true),
		}},
		newEndurance(options.Endurance, progress),
	}
}

// part measures one thing. Lines that exist when an error ends the measurement early are returned with the error.
type part func(ctx context.Context) ([]claim.Line, error)

// check measures parts one after the other, also after a part that fails.
type check struct {
	title string
	parts []part
}

// Name implements lab.Check.
func (c *check) Name() string { return c.title }

// Run implements lab.Check.
func (c *check) Run(ctx context.Context) ([]claim.Line, error) {
	var lines []claim.Line
	var failures []error
	for _, p := range c.parts {
		if err := ctx.Err(); err != nil {
			return lines, errors.Join(append(failures, err)...)
		}
		some, err := p(ctx)
		lines = append(lines, some...)
		if err != nil {
			failures = append(failures, err)
		}
	}
	return lines, errors.Join(failures...)
}
