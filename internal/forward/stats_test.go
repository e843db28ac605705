package forward

import (
	"testing"
	"time"
)

func TestHistogram(t *testing.T) {
	var h histogram
	for _, d := range []time.Duration{-time.Second, 0, time.Microsecond, 1001 * time.Nanosecond, 2 * time.Microsecond, 3 * time.Microsecond, time.Millisecond,
		33 * time.Millisecond, time.Second, time.Hour} {
		h.observe(d)
	}
	h.publish()
	h.publish()
	var sum Histogram
	h.addTo(&sum)
	want := [histogramBuckets]uint64{0: 3, 1: 2, 2: 1, 10: 1, 16: 1, 20: 1, 25: 1}
	if sum.Counts != want {
		t.Errorf("counts are %v, expected %v", sum.Counts, want)
	}
	if sum.Count() != 10 || sum.Sum < time.Hour {
		t.Errorf("%d durations of %v in all", sum.Count(), sum.Sum)
	}
	bounds := sum.Bounds()
	if len(bounds) != len(sum.Counts)-1 || bounds[10] != 1024*time.Microsecond || bounds[24] < 16*time.Second {
		t.Errorf("bounds are %v", bounds)
	}
}
