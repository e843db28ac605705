package netem_test

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
)

func TestDelayCounts(t *testing.T) {
	var counts netem.DelayCounts
	if counts.Count() != 0 || counts.Quantile(0.5) != 0 {
		t.Errorf("%d delays and a median of %v before any were counted", counts.Count(), counts.Quantile(0.5))
	}
	for d := time.Duration(0); d < 100*time.Hour; d = 17*d/16 + time.Microsecond {
		var one netem.DelayCounts
		one.Add(d)
		got, expected := one.Quantile(1), min(d.Truncate(time.Microsecond), (1<<32-1)*time.Microsecond)
		if got < expected || got > expected+expected/32 {
			t.Fatalf("%v was counted as %v, expected at most 1/32 more", d, got)
		}
	}
	for us := range 1000 {
		counts.Add(time.Duration(us+1) * time.Millisecond)
	}
	earlier := counts
	for range 3000 {
		counts.Add(-time.Second)
	}
	for share, expected := range map[float64]time.Duration{0: 0, 0.75: 0, 0.875: 500 * time.Millisecond,
		1: time.Second} {
		if got := counts.Quantile(share); got < expected || got > expected+expected/32 {
			t.Errorf("quantile %g is %v, expected %v or up to 1/32 more", share, got, expected)
		}
	}
	if since := counts.Since(&earlier); since.Count() != 3000 || since.Quantile(1) != 0 {
		t.Errorf("%d delays up to %v since, expected 3000 of 0", since.Count(), since.Quantile(1))
	}
	joined := counts.Since(&earlier)
	if joined.Join(&earlier); joined != counts {
		t.Errorf("%d delays joined, expected %d", joined.Count(), counts.Count())
	}
}
