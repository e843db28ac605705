package feedback

import (
	"testing"
	"time"
)

// TestReportLimit: usual rates are not limited; of a flood, as many reports are read in each second as the limit
// allows.
func TestReportLimit(t *testing.T) {
	for _, test := range []struct{ perSecond, want int }{{40, 40}, {1000, 1000}, {1500, 1000}, {100_000, 1000}} {
		var limit ReportLimit
		const seconds = 5
		read, begin := 0, start.Truncate(time.Second)
		for i := range seconds * test.perSecond {
			if limit.Take(begin.Add(time.Duration(i) * time.Second / time.Duration(test.perSecond))) {
				read++
			}
		}
		if read != seconds*test.want {
			t.Errorf("%d of %d reports per second are read, expected %d", read/seconds, test.perSecond, test.want)
		}
	}
}
