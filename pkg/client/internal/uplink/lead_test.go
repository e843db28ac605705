package uplink

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestShortFramesLead publishes a small and a large part of MaxUplink, while the estimate equals MaxUplink.
func TestShortFramesLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 40e6
		r := newLoopRig(t, 200, limits(most, most), described("body", volumetric.MIMEVolumetric, 1, 1))
		// 33 kB take 7 ms at 40 Mbit/s and 13 ms over their spread, and such frames are 8 Mbit/s. The path takes 10 ms.
		const size = 33_000
		expect := func(what string, leads bool) {
			t.Helper()
			r.settle()
			r.run(30*time.Millisecond, size)
			if got := r.u.Estimate(); got != most || len(r.frames) != 1 {
				t.Fatalf("%s: the estimate is %v, %d frames came; want %v and one", what, got, len(r.frames),
					volumetric.Bitrate(most))
			}
			if took := r.latency(1) - r.delay; (took < 11*time.Millisecond) != leads {
				t.Errorf("%s: a frame took %v, want it to lead: %v", what, took, leads)
			}
		}
		r.run(200*time.Millisecond, size)
		expect("nothing is known of the use yet", false)
		r.run(2*time.Second, size)
		expect("8 of 40 Mbit/s", true)
		r.run(time.Second, 36e6/8/30)
		expect("36 of 40 Mbit/s", false)
		r.run(2*time.Second, size)
		expect("8 of 40 Mbit/s again", true)
	})
}
