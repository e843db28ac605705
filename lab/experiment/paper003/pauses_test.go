package paper003

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/lab/experiment"
)

// The undisturbed path 1 with a sender of BBR, which sends four packets per round trip for 200 ms and a round trip
// every 10 s (PROBE_RTT), and otherwise as fast as the path. Frames have 50 Mbit/s, as those of the quality fhd.
const (
	pauseEvery  = 10 * time.Second
	oneWay      = 20 * time.Millisecond
	pauseLength = 200*time.Millisecond + 2*oneWay
	pathRate    = 400e6
	pausedRate  = 4 * 1448 * 8 / (2 * 0.02)
	frameRate   = 30
	frameBytes  = 208_333
)

// paused runs a viewer and a server in steps of a millisecond, and returns the worst second and the share of frames in
// time. The pauses begin at the given time of each 10 s.
func paused(t *testing.T, outstanding int, begins time.Duration) (worst, inTime float64) {
	t.Helper()
	const step, interval, length = time.Millisecond, time.Second / frameRate, time.Minute
	tr := defaultTrial()
	p := &performance{trial: &tr, viewer: viewer{interval: interval, outstanding: outstanding}}
	p.begin, p.end = variation(length)
	type frame struct {
		captured time.Duration
		left     float64 // bytes that have not left
	}
	var asked []time.Duration // arrivals of requests at the server
	var sending []frame
	var arriving []delivery
	next, due := 0, time.Duration(0)
	for at := time.Duration(0); at < length; at += step {
		for len(arriving) > 0 && arriving[0].received <= at {
			p.viewer.frames, arriving = append(p.viewer.frames, arriving[0]), arriving[1:]
		}
		if at >= due && len(p.viewer.requests)-len(p.viewer.frames) < outstanding {
			p.viewer.requests, asked = append(p.viewer.requests, at), append(asked, at+oneWay)
			due = max(due+interval, at)
		}
		// The newest frame, or the next one if it was sent: see frameSource.
		for len(asked) > 0 && asked[0] <= at {
			number := max(next, int(at/interval))
			captured := time.Duration(number) * interval
			if captured > at {
				break
			}
			next, asked, sending = number+1, asked[1:], append(sending, frame{captured, frameBytes})
		}
		rate := pathRate
		if phase := (at - begins + pauseEvery) % pauseEvery; phase < pauseLength {
			rate = pausedRate
		}
		for budget := rate / 8 * step.Seconds(); budget > 0 && len(sending) > 0; {
			sent := min(budget, sending[0].left)
			budget -= sent
			if sending[0].left -= sent; sending[0].left == 0 {
				arriving = append(arriving, delivery{captured: sending[0].captured, received: at + oneWay,
					bytes: frameBytes})
				sending = sending[1:]
			}
		}
	}
	o := experiment.NewOutcome()
	p.measure(o)
	worst, _ = o.Figure("fps_worst")
	inTime, _ = o.Figure("timely")
	return worst, inTime
}

// TestPausesOfBBR: on a path without losses and variation, the pauses alone cost more frames than the claims on table I
// permit, 28.5 frames in the worst second and 99.5 % of the frames in time. With four requests under way, frames of a
// pause are missing. With eight requests all frames arrive, but some of them too late, or in the next second.
func TestPausesOfBBR(t *testing.T) {
	for _, outstanding := range []int{4, 8} {
		least, most, mostTimely := 30.0, 0.0, 0.0
		for begins := time.Duration(0); begins < time.Second; begins += 20 * time.Millisecond {
			worst, inTime := paused(t, outstanding, begins)
			least, most, mostTimely = min(least, worst), max(most, worst), max(mostTimely, inTime)
		}
		t.Logf("%d requests: %g to %g frames in the worst second, at most %.1f %% of the frames in time", outstanding,
			least, most, mostTimely)
		if outstanding == 4 && most >= 28.5 || mostTimely >= 99.5 {
			t.Errorf("%d requests: %g frames in the worst second, %.1f %% in time: the claims can be met", outstanding,
				most, mostTimely)
		}
	}
}
