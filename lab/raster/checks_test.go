package raster

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/lab"
	_ "github.com/volsfu/volsfu/pkg/codec/dracojpeg" // registers draco, too
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/long"
	"github.com/volsfu/volsfu/test/race"
)

// TestFilms codes few frames of each film, without the race detector: it would multiply the time of rendering and of
// comparing points by ten. The packages that render, code and compare have tests of their own under the detector, and
// TestLive codes the same films. Times depend on the load of the machine and are not judged.
func TestFilms(t *testing.T) {
	long.Test(t)
	if race.Enabled {
		t.Skip("computes on films: runs without the race detector")
	}
	for _, c := range shortChecks(t, false) {
		for _, l := range run(t, c) {
			if l.Skipped == "" && !l.Met && l.Unit != "ms" {
				t.Errorf("%s: %v %s, expected %s", l.Name, l.Figure, l.Unit, l.Target)
			}
		}
	}
}

// TestLive runs the checks of live sessions, with the race detector. Their figures depend on the load of the machine
// and are not judged.
func TestLive(t *testing.T) {
	long.Test(t)
	for _, c := range shortChecks(t, true) {
		run(t, c)
	}
}

// shortChecks returns the checks of live sessions, or the others, on few frames. The tests of the source tree are no
// part of them: they judge figures of a quiet machine.
func shortChecks(t *testing.T, live bool) []*check {
	t.Helper()
	o := DefaultOptions()
	o.Frames, o.Compared, o.Repeats, o.Switches, o.Blocks, o.Block = 1, 1, 1, 20, 1, time.Second
	var list []*check
	for _, c := range Checks(o, lab.NewProgress(t.Output())) {
		if c, ok := c.(*check); ok && c.live == live {
			list = append(list, c)
		}
	}
	return list
}

// run runs a check, which must have lines.
func run(t *testing.T, c *check) []claim.Line {
	t.Helper()
	lines, err := c.Run(t.Context())
	if err != nil {
		t.Fatalf("%s: %v", c.Name(), err)
	}
	if len(lines) == 0 {
		t.Errorf("%s: no lines", c.Name())
	}
	for _, l := range lines {
		if l.Skipped != "" {
			t.Logf("%s: skipped: %s", l.Name, l.Skipped)
		}
	}
	return lines
}
