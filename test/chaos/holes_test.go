package chaos

import (
	"math"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/testbed"
	"github.com/volsfu/volsfu/test/wait"
)

// hole is a range of frame numbers of a flow that did not arrive.
type hole struct {
	first, last int64
	// before and after are the frames around the hole.
	before, after testbed.Arrival
}

// findHoles returns the holes of a tile since a time, and those whose frames may have been repaired then.
func findHoles(arrivals []testbed.Arrival, tile volumetric.TileRef, since time.Time) (holes []hole) {
	got := map[int64]testbed.Arrival{}
	first, previous, last := int64(math.MaxInt64), int64(0), int64(-1)
	for _, a := range arrivals {
		if a.Track.TileRef != tile {
			continue
		}
		got[a.Number] = a
		if !a.Complete.After(since) {
			previous = max(previous, a.Number)
		}
		first, last = min(first, a.Number), max(last, a.Number)
	}
	missing := func(n int64) bool { _, ok := got[n]; return !ok }
	for n := max(first, previous-int64(repairTime/interval)); n <= last; n++ {
		if !missing(n) {
			continue
		}
		h := hole{first: n, before: got[n-1]}
		for missing(n + 1) {
			n++
		}
		h.last, h.after = n, got[n+1]
		holes = append(holes, h)
	}
	return holes
}

// interval is the time between two frames of a tile.
const interval = time.Second / frameRate

// concerned returns the number of frames of the holes that were captured during a stall or up to repairTime before: a
// stall may have prevented their repair.
func concerned(holes []hole, stalls []wait.Stall) (n int64) {
	for _, h := range holes {
		for number := h.first; number <= h.last; number++ {
			captured := h.after.Capture.Add(-time.Duration(h.last+1-number) * interval)
			for _, s := range stalls {
				// Numbers follow a clock, but for one interval.
				if captured.After(s.Begin.Add(-repairTime-interval)) && captured.Before(s.End.Add(interval)) {
					n++
					break
				}
			}
		}
	}
	return n
}

// captured returns the number of frames of all flows that are captured during stalls.
func captured(stalls []wait.Stall) (n int64) {
	const flows = 4 * 3
	for _, s := range stalls {
		n += flows * int64(load.Tiles) * int64(math.Ceil(s.End.Sub(s.Begin).Seconds()*load.Rate))
	}
	return n
}

// TestStallsExplainFewLosses loses frames before, in and after a stall.
func TestStallsExplainFewLosses(t *testing.T) {
	start := time.Unix(1_800_000_000, 0)
	at := func(number int64) time.Time { return start.Add(time.Duration(number) * interval) }
	tile := tileOf("alice", 0)
	stalls := []wait.Stall{{Begin: at(200), End: at(200).Add(300 * time.Millisecond)}}
	for _, c := range []struct {
		name              string
		first, last, want int64
	}{
		{"long before", 100, 109, 0},
		{"during the repair and the stall", 180, 204, 25},
		{"partly before", 160, 200, 32},
		{"around the time since which losses count", 45, 55, 0},
		{"after", 210, 219, 0},
	} {
		var arrivals []testbed.Arrival
		for number := range int64(400) {
			if number < c.first || number > c.last {
				arrivals = append(arrivals, testbed.Arrival{Track: volumetric.TrackRef{TileRef: tile}, Number: number,
					Capture: at(number), Complete: at(number).Add(10 * time.Millisecond)})
			}
		}
		holes := findHoles(arrivals, tile, at(50))
		if len(holes) != 1 || holes[0].first != c.first || holes[0].last != c.last {
			t.Errorf("%s: holes%s", c.name, describe(holes))
		}
		if got := concerned(holes, stalls); got != c.want {
			t.Errorf("%s: %d losses are explained, expected %d", c.name, got, c.want)
		}
	}
	if got := captured(stalls); got != 24*5 {
		t.Errorf("%d frames are captured during a stall of 300 ms, expected %d", got, 24*5)
	}
}
