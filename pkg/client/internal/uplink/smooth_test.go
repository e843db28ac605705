package uplink

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestSmooth sends the two tiles of a frame, 40 packets each, over a smooth path of 50 Mbit/s: one tile after the
// other, 2 or 3 packets every 0.5 ms, as long as the path takes for them.
func TestSmooth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newRig(t)
		p, wires := published(t, u, described("body", volumetric.MIMEVolumetric, 2, 1))
		u.queue.sender.SetPath(pacing.Path{Estimate: 50_000_000, Smooth: true}, u.queue.at(time.Now()))
		time.Sleep(100 * time.Millisecond)
		begun := time.Now()
		for tile := range wires {
			if !write(t, u, p, tile, 0, 1, 45_000) {
				t.Fatal("a frame is not sent")
			}
		}
		most := 0
		for due, waits := u.Due(); waits; due, waits = u.Due() {
			time.Sleep(time.Until(due))
			first, second := len(wires[0].sent), len(wires[1].sent)
			flush(u, time.Now())
			left := len(wires[0].sent) + len(wires[1].sent) - first - second
			most = max(most, left)
			if after := time.Since(begun); left > 0 && after%(500*time.Microsecond) != 0 {
				t.Errorf("%d packets left after %v, want multiples of 0.5 ms", left, after)
			}
			if second == 0 && len(wires[1].sent) > 0 && len(wires[0].sent) != 40 {
				t.Errorf("the second tile begins after %d packets of the first", len(wires[0].sent))
			}
		}
		if n := len(wires[0].sent) + len(wires[1].sent); n != 80 || most != 3 {
			t.Errorf("%d packets left, %d at once; want 80, and 3 at most", n, most)
		}
		// 80 packets of 1,224 bytes take 15.7 ms at the estimate.
		if took := time.Since(begun); took < 14*time.Millisecond || took > 16*time.Millisecond {
			t.Errorf("the frame left within %v, want 15 ms", took)
		}
	})
}
