package metrics

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/volsfu/volsfu/pkg/signal"
)

func TestAdaptation(t *testing.T) {
	registry, m := newRegistry(t, plane{})
	m.TracksPaused(7)
	m.TracksPaused(-3)
	m.Suppressed(8000)
	m.Decided(signal.ReasonBudget)
	m.Decided("whim")
	m.Allocated(500*time.Microsecond, 80e6)
	const want = `
# HELP volsfu_decisions_total Decisions that changed what a slot carries, or why, by reason: choice, auto, budget, unseen.
# TYPE volsfu_decisions_total counter
volsfu_decisions_total{reason="auto"} 0
volsfu_decisions_total{reason="budget"} 1
volsfu_decisions_total{reason="choice"} 0
volsfu_decisions_total{reason="other"} 1
volsfu_decisions_total{reason="unseen"} 0
# HELP volsfu_suppressed_bytes_total Bytes that publishers were spared by that, at the rates that the tracks had or were declared with.
# TYPE volsfu_suppressed_bytes_total counter
volsfu_suppressed_bytes_total 1000
# HELP volsfu_tracks_paused Tracks that publishers have been told not to send, since nobody takes them.
# TYPE volsfu_tracks_paused gauge
volsfu_tracks_paused 4
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), tracksPaused, suppressedBytes, decisions); err != nil {
		t.Error(err)
	}
	for _, name := range []string{allocationSeconds, allocationBudget} {
		if n, err := testutil.GatherAndCount(registry, name); err != nil || n != 1 {
			t.Errorf("%s: %d series, %v", name, n, err)
		}
	}
}
