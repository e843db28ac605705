package trace

import (
	"slices"
	"testing"
	"time"
)

func TestHistogram(t *testing.T) {
	var h Durations
	for _, d := range []time.Duration{-time.Second, 0, time.Microsecond, 1001 * time.Nanosecond, 2 * time.Microsecond,
		3 * time.Microsecond, time.Millisecond,
		33 * time.Millisecond, time.Second, time.Hour} {
		h.Observe(d, 1)
	}
	h.Publish()
	h.Publish()
	var sum Histogram
	h.AddTo(&sum)
	for _, bucket := range []struct {
		bound time.Duration
		count uint64
	}{{time.Microsecond, 3}, {2 * time.Microsecond, 2}, {5 * time.Microsecond, 1}, {time.Millisecond, 1},
		{40 * time.Millisecond, 1}, {time.Second, 1}} {
		i := slices.Index(sum.Bounds(), bucket.bound)
		if i < 0 {
			t.Fatalf("no bucket ends at %v", bucket.bound)
		}
		if sum.Counts[i] != bucket.count {
			t.Errorf("%d durations in the bucket up to %v, number %d, expected %d", sum.Counts[i], bucket.bound, i,
				bucket.count)
		}
	}
	if sum.Count() != 10 || sum.Sum < time.Hour {
		t.Errorf("%d durations of %v in all", sum.Count(), sum.Sum)
	}
	bounds := sum.Bounds()
	if len(bounds) != len(sum.Counts)-1 || !slices.IsSorted(bounds) || sum.Counts[len(bounds)] != 1 {
		t.Errorf("bounds are %v, counts %v", bounds, sum.Counts)
	}
	for _, d := range []time.Duration{200 * time.Microsecond, time.Millisecond, 3 * time.Millisecond} {
		if !slices.Contains(bounds, d) {
			t.Errorf("no bucket ends at %v", d)
		}
	}
}

// TestHistogramBuckets counts each duration in the first bucket whose bound it does not exceed.
func TestHistogramBuckets(t *testing.T) {
	var all Histogram
	bounds := all.Bounds()
	var h Durations
	for us := 0; us < 40_000_000; us += 1 + us/50 {
		d := time.Duration(us) * time.Microsecond
		h.pending = [histogramBuckets]uint32{}
		h.Observe(d, 3)
		want, _ := slices.BinarySearch(bounds, d)
		if h.pending[want] != 3 {
			t.Fatalf("%v is not in bucket %d: %v", d, want, h.pending)
		}
	}
}
