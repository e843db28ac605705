package paper003

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/frametimes"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestOutagesLeaveOneLink: at no time both links of a client fail, and each schedule fits its cycle.
func TestOutagesLeaveOneLink(t *testing.T) {
	for i, a := range outages {
		if a.from >= a.to || a.to >= outageCycle {
			t.Errorf("outage %d is from %v to %v, expected a time within %v", i, a.from, a.to, outageCycle)
		}
		for j, b := range outages[:i] {
			if a.client == b.client && a.from < b.to && b.from < a.to {
				t.Errorf("the outages %d and %d of client %d are at the same time", j, i, a.client)
			}
		}
	}
	for _, failure := range []string{failureLoss, failureUnplugged} {
		plan := wirelessLayout(failure, 1)
		if err := plan.Validate(); err != nil {
			t.Errorf("%s: %v", failure, err)
		}
		silent := len(plan.Links["viewer-wifi"].Forth.Schedule) > 0
		if silent != (failure == failureLoss) || len(plan.Links["viewer-5g"].Back.Schedule) != 2 {
			t.Errorf("%s: the links of the viewer have other outages", failure)
		}
	}
}

// frameAt returns a record with times in ms; an arrival of 0 is none.
func frameAt(tile, quality int, number, captured, arrived int64) (r frametimes.Record) {
	r.Track.Tile, r.Track.Quality, r.Frame = tile, volumetric.Quality(quality), number
	r.Times[frametimes.Captured] = captured * int64(time.Millisecond)
	r.Times[frametimes.Reassembled] = arrived * int64(time.Millisecond)
	return r
}

// TestCompareFrames counts frames at several qualities and outside the measurement.
func TestCompareFrames(t *testing.T) {
	var sent, received []frametimes.Record
	at := func(frame int64) int64 { return 1000 + 33*frame }
	for frame := range int64(30) {
		for tile := range figureTiles {
			for quality := range 2 {
				sent = append(sent, frameAt(tile, quality, frame, at(frame), 0))
			}
			quality, delay := 1, int64(40)
			if tile < lowTiles || frame > 20 {
				quality = 0
			}
			switch {
			case tile == 0 && frame == 12: // lost, after a late one
				continue
			case tile == 0 && frame == 11:
				delay = 60
			case tile == 3 && frame == 15: // lost at both qualities
				continue
			case tile == 1 && frame == 2: // lost before the measurement
				continue
			}
			received = append(received, frameAt(tile, quality, frame, at(frame), at(frame)+delay))
		}
	}
	c := compareFrames(sent, received, time.UnixMilli(at(5)), time.UnixMilli(at(25)))
	if c.lowest != 20*lowTiles || c.lowestLost != 1 || c.highLost != 1 || c.gap != 53*time.Millisecond ||
		len(c.latencies) != 20*lowTiles-1 {
		t.Errorf("got %d frames, %d and %d lost, gap %v, %d latencies, expected %d, 1 and 1 lost, gap 53ms, %d",
			c.lowest, c.lowestLost, c.highLost, c.gap, len(c.latencies), 20*lowTiles, 20*lowTiles-1)
	}
}

// TestConferenceParameters refuses unknown parameters.
func TestConferenceParameters(t *testing.T) {
	for name, change := range map[string]func(*conference){
		"arm": func(c *conference) { c.Arm = "auto" }, "failure": func(c *conference) { c.Failure = "fire" },
		"points": func(c *conference) { c.Points = 0 },
	} {
		c := defaultConference()
		if change(&c); c.Validate() == nil {
			t.Errorf("%s: %+v is accepted", name, c)
		}
	}
	if err := defaultConference().Validate(); err != nil {
		t.Error(err)
	}
}
