package trace

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Histogram counts durations. Counts[i] counts durations of at most Bounds()[i] that exceed the bound before; the last
// element counts durations beyond every bound.
type Histogram struct {
	Counts [histogramBuckets]uint64
	Sum    time.Duration
}

// Bounds returns the upper bounds of all buckets except the last: from 1 µs to 20 s.
func (h *Histogram) Bounds() []time.Duration {
	bounds := make([]time.Duration, len(histogramBounds))
	for i, us := range histogramBounds {
		bounds[i] = time.Duration(us) * time.Microsecond
	}
	return bounds
}

// Count returns the number of durations.
func (h *Histogram) Count() uint64 {
	var n uint64
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Quantile returns the upper bound of the bucket that contains the given quantile (0 to 1) of the durations: 0 if there
// are none, the highest bound for durations beyond that bound.
func (h *Histogram) Quantile(share float64) time.Duration {
	rank, below := share*float64(h.Count()), 0.0
	for i, count := range h.Counts {
		if below += float64(count); count > 0 && below >= rank {
			return time.Duration(histogramBounds[min(i, len(histogramBounds)-1)]) * time.Microsecond
		}
	}
	return 0
}

// histogramBounds are the upper bounds of all buckets except the last, in microseconds. They are dense around the
// targets for residence: 200 µs for the median, 1 ms for 99 % and 3 ms for 99.9 % of the packets. Pacing delays and
// switches take 2 to 100 ms.
var histogramBounds = [...]uint64{
	1, 2, 5, 10, 20, 30, 40, 50, 60, 80, 100, 120, 140, 160, 180, 200, 220, 250, 300, 350, 400, 500, 600, 700, 800, 900,
	1000, 1100, 1250, 1500, 1750, 2000, 2250, 2500, 2750, 3000, 3250, 3500, 4000, 5000, 6000, 8000,
	10_000, 12_000, 14_000, 17_000, 20_000, 25_000, 30_000, 40_000, 50_000, 70_000, 100_000, 150_000, 200_000, 300_000,
	500_000,
	1_000_000, 2_000_000, 5_000_000, 10_000_000, 20_000_000,
}

const histogramBuckets = len(histogramBounds) + 1

// histogramStart[n] is the first bucket of durations whose number of microseconds has n bits. Durations of more than 25
// bits belong to the last bucket.
var histogramStart = func() (start [26]uint8) {
	for n := range start {
		i := 0
		for i < len(histogramBounds) && histogramBounds[i] < 1<<n>>1 {
			i++
		}
		start[n] = uint8(i)
	}
	return start
}()

// Durations counts durations in the buckets of a Histogram. One goroutine observes. Publish makes its observations
// visible to all goroutines.
type Durations struct {
	pending [histogramBuckets]uint32
	sum     time.Duration
	// last is the bucket of the last observation, because the next one is often similar. least and most are the lowest
	// and the highest bucket with pending observations; they are valid while sum is above 0.
	last, least, most int

	buckets [histogramBuckets]atomic.Uint64
	total   atomic.Int64
}

// Observe counts a duration n times.
func (h *Durations) Observe(d time.Duration, n uint32) {
	// The duration is at least one nanosecond, so that a sum above 0 means that there is something to publish.
	d = max(d, 1)
	us := uint64((d + time.Microsecond - 1) / time.Microsecond)
	i := h.last
	if i == len(histogramBounds) || us > histogramBounds[i] || i > 0 && us <= histogramBounds[i-1] {
		i = bucketOf(us)
		h.last = i
	}
	if h.sum == 0 {
		h.least, h.most = i, i
	}
	h.least, h.most = min(h.least, i), max(h.most, i)
	h.pending[i] += n
	h.sum += d * time.Duration(n)
}

// bucketOf returns the bucket of a duration in microseconds.
func bucketOf(us uint64) int {
	i := int(histogramStart[min(bits.Len64(us), len(histogramStart)-1)])
	for i < len(histogramBounds) && histogramBounds[i] < us {
		i++
	}
	return i
}

// Publish makes the pending observations visible.
func (h *Durations) Publish() {
	if h.sum == 0 {
		return
	}
	for i := h.least; i <= h.most; i++ {
		if n := h.pending[i]; n != 0 {
			h.buckets[i].Add(uint64(n))
			h.pending[i] = 0
		}
	}
	h.total.Add(int64(h.sum))
	h.sum = 0
}

// AddTo adds the published counts to sum.
func (h *Durations) AddTo(sum *Histogram) {
	for i := range h.buckets {
		sum.Counts[i] += h.buckets[i].Load()
	}
	sum.Sum += time.Duration(h.total.Load())
}
