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
	want := expected(t, "adaptation.txt")
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), tracksPaused, suppressedBytes,
		decisions); err != nil {
		t.Error(err)
	}
	for _, name := range []string{allocationSeconds, allocationBudget} {
		if n, err := testutil.GatherAndCount(registry, name); err != nil || n != 1 {
			t.Errorf("%s: %d series, %v", name, n, err)
		}
	}
}
