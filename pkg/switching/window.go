package switching

// windowSize is the number of output numbers, up to the highest number sent, that are tracked individually. windowSize
// is a power of two.
const windowSize = 1 << 14

// window records which of the latest output numbers have been sent, in a ring of bits indexed by
// number.
type window struct {
	// words is nil before the first run. It has 2 kB.
	words  *[windowSize / 64]uint64
	newest int64
}

// mark marks number n as sent. mark returns false if n was sent before or has left the window.
func (w *window) mark(n int64) bool {
	word, bit := &w.words[(n&(windowSize-1))/64], uint64(1)<<(n&63)
	if n > w.newest {
		if n != w.newest+1 {
			w.forget(w.newest+1, n)
		}
		w.newest = n
		*word |= bit
		return true
	}
	if w.newest-n >= windowSize || *word&bit != 0 {
		return false
	}
	*word |= bit
	return true
}

// old reports whether the number has left the window.
func (w *window) old(n int64) bool { return w.newest-n >= windowSize }

// forget clears the bits of the numbers from first up to, but not including, end. They still
// contain the bits of the numbers windowSize below.
func (w *window) forget(first, end int64) {
	if end-first >= windowSize {
		*w.words = [windowSize / 64]uint64{}
		return
	}
	for n := first; n < end; {
		word := &w.words[(n&(windowSize-1))/64]
		if n&63 == 0 && end-n >= 64 {
			*word = 0
			n += 64
			continue
		}
		*word &^= 1 << (n & 63)
		n++
	}
}
