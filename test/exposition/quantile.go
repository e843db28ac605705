package exposition

import (
	"maps"
	"slices"
	"time"
)

// bucketsOf converts cumulative counts to the counts of single buckets.
func bucketsOf(cumulative map[time.Duration]float64) []Bucket {
	var buckets []Bucket
	before := 0.0
	for _, bound := range slices.Sorted(maps.Keys(cumulative)) {
		buckets = append(buckets, Bucket{bound, cumulative[bound] - before})
		before = cumulative[bound]
	}
	return buckets
}

// Quantile estimates the duration that the given share (0 to 1) of a histogram does not exceed, if durations are
// distributed evenly within each bucket. Quantile is 0 for an empty histogram. The unbounded bucket counts as its lower
// bound.
func Quantile(buckets []Bucket, share float64) time.Duration {
	total := 0.0
	for _, b := range buckets {
		total += b.Count
	}
	if total <= 0 {
		return 0
	}
	rank, below := share*total, 0.0
	lower := time.Duration(0)
	for _, b := range buckets {
		if b.Count > 0 && below+b.Count >= rank {
			if b.Bound == Unbounded {
				return lower
			}
			return lower + time.Duration((rank-below)/b.Count*float64(b.Bound-lower))
		}
		below += b.Count
		lower = b.Bound
	}
	return lower
}
