package interop

import (
	"flag"
	"math"
	"testing"
	"time"

	"github.com/volsfu/volsfu/test/claim"
)

// full runs tests at the specified load of 30 frames per second, and checks figures against their targets, including
// losses, for which a busy machine is no excuse. Without it, the limits are suited to a busy machine with the race
// detector.
var full = flag.Bool("full", false,
	"run with the specified load and targets, for vollab check interop, on an otherwise idle machine")

// measured logs a figure for vollab check interop, and fails the test if it misses its target.
func measured(t *testing.T, l claim.Line) {
	t.Helper()
	t.Log(claim.Figure(l))
	if l.Missed() {
		t.Errorf("missed: %s", l)
	}
}

// fullIncomplete is the tolerated share of incomplete frames: one in 1,000. Losses are not repaired for old peers, and
// their sockets have Linux's default buffers of 208 KiB.
const fullIncomplete = 0.001

// measureTally logs the counts of bad frames, which must be 0, and of incomplete frames, whose packets are not repaired
// for old peers.
func measureTally(t *testing.T, sum tally) {
	t.Helper()
	measured(t, claim.Information("frames that came", float64(sum.frames), ""))
	measured(t, claim.Exactly("frames broken, rejected or not what was sent", int64(sum.bad), "", 0))
	measured(t, claim.Exactly("old peers that the original would have died or been spoilt as",
		int64(sum.faults), "", 0))
	incomplete, frames := float64(sum.incomplete), float64(sum.frames)
	if *full {
		measured(t, claim.AtMost("frames incomplete for want of packets", incomplete, "",
			math.Floor(fullIncomplete*frames)))
	} else {
		measured(t, claim.Information("frames incomplete for want of packets", incomplete, ""))
	}
	measured(t, claim.Information("packets that did not come", float64(sum.packets), ""))
}

// fullPace is the required share of the published frames: 27 of 30 frames per second.
const fullPace = 0.9

// measurePace logs the received frames per second, with a target only with -full.
func measurePace(t *testing.T, name string, pace, published float64) {
	t.Helper()
	if *full {
		measured(t, claim.AtLeast(name, pace, "", fullPace*published))
		return
	}
	measured(t, claim.Information(name, pace, ""))
}

// maxBridgeDelay limits the delay that a bridge adds to a frame in either direction at the 99th percentile, in
// milliseconds.
const maxBridgeDelay = 2

// measureBridges logs the larger of the delays that two bridges added to frames.
func measureBridges(t *testing.T, summaries [2]*bridgeSummary) {
	t.Helper()
	for _, way := range []struct {
		name  string
		delay func(*bridgeSummary) bridgeDelay
	}{
		{"from the connector's last datagram of a frame to the server",
			func(s *bridgeSummary) bridgeDelay { return s.Up }},
		{"from the server's last packet of a frame to the connector",
			func(s *bridgeSummary) bridgeDelay { return s.Down }},
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
