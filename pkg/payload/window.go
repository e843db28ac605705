package payload

// window records which of the last windowFrames frame numbers are finished, that is, completed or
// given up.
type window struct {
	newest   int64
	finished [windowFrames / 64]uint64
}

// windowFrames is the number of frame numbers that the window covers: 8 s at 60 frames per second,
// many times the longest deadline.
const windowFrames = 512

// begin clears the window and makes number the newest.
func (w *window) begin(number int64) { *w = window{newest: number} }

// advance makes number the newest if it is newer than the newest so far.
func (w *window) advance(number int64) {
	if number-w.newest >= windowFrames {
		w.begin(number)
		return
	}
	for ; w.newest < number; w.newest++ {
		next := w.newest + 1
		w.finished[next&(windowFrames-1)/64] &^= 1 << (next & 63)
	}
}

// stale reports whether number is older than the window.
func (w *window) stale(number int64) bool { return number <= w.newest-windowFrames }

// done reports whether number, which must not be stale, is finished.
func (w *window) done(number int64) bool {
	return number <= w.newest && w.finished[number&(windowFrames-1)/64]&(1<<(number&63)) != 0
}

// finish marks number as finished. number must be neither stale nor newer than the newest.
func (w *window) finish(number int64) {
	w.finished[number&(windowFrames-1)/64] |= 1 << (number & 63)
}
