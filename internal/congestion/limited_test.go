package congestion

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/feedback"
)

// TestPathsAreApplicationLimited sends frames at a share of a constant estimate, each of which arrives after 10 ms and
// is reported 10 ms later, and checks the path passed to a pacer with each report.
func TestPathsAreApplicationLimited(t *testing.T) {
	const estimate, interval = 20 * mbit, 33 * time.Millisecond
	cfg := startingAt(estimate)
	cfg.Min, cfg.Max, cfg.Probe.Enabled = estimate, estimate, false
	for name, e := range map[string]Estimator{"GCC": newGCC(cfg, start), "reliable": newReliable(cfg, start)} {
		now, number := start, int64(0)
		frames := func(share float64, length time.Duration) (limited []bool) {
			for end := now.Add(length); now.Before(end); now = now.Add(interval) {
				var results []feedback.PacketResult
				for range max(1, int(share*estimate*interval.Seconds()/8/1200)) {
					e.Sent(now, 1200)
					results = append(results,
						feedback.PacketResult{Sequence: number, Size: 1200, Sent: now,
							Arrived: now.Sub(start) + 10*time.Millisecond, Received: true})
					number++
				}
				e.Report(now.Add(20*time.Millisecond), results)
				stats := e.Stats()
				path := stats.Path()
				if want := (pacing.Path{Estimate: estimate, Carried: estimate,
					ApplicationLimited: stats.ApplicationLimited}); path != want {
					t.Fatalf("%s: the path is %+v, want %+v", name, path, want)
				}
				limited = append(limited, path.ApplicationLimited)
			}
			return limited
		}
		check := func(what string, limited []bool, first, last bool) {
			t.Helper()
			changes := 0
			for i := 1; i < len(limited); i++ {
				if limited[i] != limited[i-1] {
					changes++
				}
			}
			if limited[0] != first || limited[len(limited)-1] != last || changes > 1 {
				t.Errorf("%s, %s: the sender counts as application-limited: %v", name, what, limited)
			}
		}
		check("a quarter from the beginning", frames(0.25, 2*time.Second), false, true)
		check("all of it", frames(0.95, 2*time.Second), true, false)
		check("a quarter again", frames(0.25, 2*time.Second), false, true)
		check("between the two bounds it does not change", frames(0.62, 2*time.Second), true, true)
		check("all again", frames(0.95, 2*time.Second), true, false)
		now = now.Add(10 * time.Second)
		check("after a pause", frames(0.25, time.Second), true, true)
	}
}
