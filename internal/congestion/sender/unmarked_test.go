package sender_test

import (
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/congestion/sender"
	"github.com/volsfu/volsfu/internal/congestion/sender/sendertest"
)

// TestFramesLeadOnAnUnmarkedPath sends frames of 24 packets, 6.9 Mbit/s, over a path that passes ECT and marks nothing.
// At an estimate of sixteen times as much a frame takes 2 ms. The frames leave as soon after 10 s without a mark, when
// packets leave in longer ticks, as before.
func TestFramesLeadOnAnUnmarkedPath(t *testing.T) {
	const packets, most = 24, 5 * time.Millisecond
	start := time.Unix(1_000_000, 0)
	plan, err := pacing.Default.Plan()
	if err != nil {
		t.Fatal(err)
	}
	estimator := congestion.New(congestion.L4S, congestion.DefaultConfig(), start)
	loop := sendertest.Loop{Options: sender.Options{Plan: plan, Look: sender.LookInterval}, Estimator: estimator,
		Delay: 20 * time.Millisecond, Interval: time.Second / 30, Packets: packets}
	var earlier, later []time.Duration
	for _, f := range loop.Run(start, 20*time.Second) {
		switch took := f.Left - f.Offered; {
		case f.Offered >= 15*time.Second:
			later = append(later, took)
		case f.Offered >= 8*time.Second && f.Offered < 9*time.Second:
			earlier = append(earlier, took)
		}
	}
	stats := estimator.Stats()
	if stats.Smooth || !stats.Unmarked || !stats.ApplicationLimited || stats.Congested > 0 {
		t.Errorf("the state is %+v, expected an unmarked path of which little is used", stats)
	}
	if len(earlier) != 30 || len(later) < 145 {
		t.Fatalf("%d and %d frames left", len(earlier), len(later))
	}
	for when, took := range map[string][]time.Duration{"before 9 s": earlier, "from 15 s on": later} {
		if slowest := slices.Max(took); slowest > most {
			t.Errorf("%s a frame took %v, expected %v at most", when, slowest, most)
		}
	}
}
