package present

import (
	"slices"
	"time"
)

// windowSize is the number of observations that are kept: 10 s at 30 per second. Three frames may exceed the 99th
// percentile.
const windowSize = 300

// window holds the newest observations, in order of arrival and sorted.
type window struct {
	ring   []time.Duration
	at     int
	sorted []time.Duration
}

// add adds an observation and removes the oldest of a full window.
func (w *window) add(v time.Duration) {
	if len(w.ring) < windowSize {
		w.ring = append(w.ring, v)
	} else {
		i, _ := slices.BinarySearch(w.sorted, w.ring[w.at])
		w.sorted = slices.Delete(w.sorted, i, i+1)
		w.ring[w.at] = v
		w.at = (w.at + 1) % windowSize
	}
	i, _ := slices.BinarySearch(w.sorted, v)
	w.sorted = slices.Insert(w.sorted, i, v)
}

// quantile returns the smallest observation that at least the fraction q of all observations do not exceed.
func (w *window) quantile(q float64) time.Duration {
	return w.sorted[max(0, int(q*float64(len(w.sorted))+0.999999)-1)]
}
