package present

import (
	"slices"
	"time"
)

// windowSize is how many observations are looked back on: ten seconds at 30 per second. Of so many, three may exceed
// the 99th percentile.
const windowSize = 300

// window holds the newest observations and their order.
type window struct {
	ring   []time.Duration
	at     int
	sorted []time.Duration
}

// add takes one observation, and drops the oldest of a full window.
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

// quantile is the smallest observation that the fraction q of all do not exceed.
func (w *window) quantile(q float64) time.Duration {
	return w.sorted[max(0, int(q*float64(len(w.sorted))+0.999999)-1)]
}
