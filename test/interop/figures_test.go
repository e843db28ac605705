package interop

import (
	"flag"
	"math"
	"testing"
	"time"

	"github.com/volsfu/volsfu/test/claim"
)

// full has tests run at the load that is claimed, 30 frames per second, and hold figures against their targets: what is lost to a machine that has no time is then
// a loss. Without it they are what a busy machine with the race detector can bear.
var full = flag.Bool("full", false, "run with the load and the targets that are claimed, for vollab check interop: on a machine that has nothing else to do")

// measured logs a figure for vollab check interop to read, and fails the test where it misses its target.
func measured(t *testing.T, l claim.Line) {
	t.Helper()
	t.Log(claim.Figure(l))
	if l.Missed() {
		t.Errorf("missed: %s", l)
	}
}

// fullIncomplete is the part of the frames that may be incomplete: one in 1,000. Old peers have nothing that is lost repaired, and
// their sockets keep the 208 KiB that Linux gives by default.
const fullIncomplete = 0.001

// measureTally says what came: nothing bad. What is incomplete has lost packets on its way, which nobody repairs for old peers.
func measureTally(t *testing.T, sum tally) {
	t.Helper()
	measured(t, claim.Information("frames that came", float64(sum.frames), ""))
	measured(t, claim.Exactly("frames broken, rejected or not what was sent", int64(sum.bad), "", 0))
	measured(t, claim.Exactly("old peers that the original would have died or been spoilt as", int64(sum.faults), "", 0))
	incomplete, frames := float64(sum.incomplete), float64(sum.frames)
	if *full {
		measured(t, claim.AtMost("frames incomplete for want of packets", incomplete, "", math.Floor(fullIncomplete*frames)))
	} else {
		measured(t, claim.Information("frames incomplete for want of packets", incomplete, ""))
	}
	measured(t, claim.Information("packets that did not come", float64(sum.packets), ""))
}

// fullPace is the part of what is published that has to come: 27 of 30 frames per second.
const fullPace = 0.9

// measurePace says how many frames per second came, which has a target on machines that have time only.
func measurePace(t *testing.T, name string, pace, published float64) {
	t.Helper()
	if *full {
		measured(t, claim.AtLeast(name, pace, "", fullPace*published))
		return
	}
	measured(t, claim.Information(name, pace, ""))
}

// maxBridgeDelay is what a bridge may add to a frame in either direction at the 99th percentile, in milliseconds.
const maxBridgeDelay = 2

// measureBridges says what two bridges added to frames, the worse of them.
func measureBridges(t *testing.T, summaries [2]*bridgeSummary) {
	t.Helper()
	for _, way := range []struct {
		name  string
		delay func(*bridgeSummary) bridgeDelay
	}{
		{"from the connector's last datagram of a frame to the server", func(s *bridgeSummary) bridgeDelay { return s.Up }},
		{"from the server's last packet of a frame to the connector", func(s *bridgeSummary) bridgeDelay { return s.Down }},
	} {
		first, second := way.delay(summaries[0]), way.delay(summaries[1])
		measured(t, claim.Information(way.name+", median", max(first.P50, second.P50), "ms"))
		if p99 := max(first.P99, second.P99); *full {
			measured(t, claim.AtMost(way.name+", p99", p99, "ms", maxBridgeDelay))
		} else {
			measured(t, claim.Information(way.name+", p99", p99, "ms"))
		}
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
