package e2ee

// windowSize is the number of counters in a replay window. A sender counts everything that it seals: 64 tiles at 3
// qualities and 90 frames per second are 17,280 counters per second, so the window covers 3.8 s. A frame is repaired
// for half a second at most. The window takes 8 KiB.
const windowSize = 1 << 16

// window records the counters of one key that were received. The zero value has none.
type window struct {
	seen [windowSize / 64]uint64
	// highest is the highest counter, if any is set.
	highest uint64
	any     bool
}

// fresh reports whether a counter has not been received. A counter below the window is not fresh.
func (w *window) fresh(counter uint64) bool {
	switch {
	case !w.any || counter > w.highest:
		return true
	case w.highest-counter >= windowSize:
		return false
	}
	return w.seen[counter%windowSize/64]&(1<<(counter%64)) == 0
}

// add records a fresh counter.
func (w *window) add(counter uint64) {
	switch {
	case !w.any:
		w.any, w.highest = true, counter
	case counter > w.highest && counter-w.highest >= windowSize:
		clear(w.seen[:])
		w.highest = counter
	case counter > w.highest:
		for c := w.highest + 1; c <= counter; c++ {
			w.seen[c%windowSize/64] &^= 1 << (c % 64)
		}
		w.highest = counter
	}
	w.seen[counter%windowSize/64] |= 1 << (counter % 64)
}
