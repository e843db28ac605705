package feedback

import (
	"cmp"
	"time"
)

// WindowMax is the maximum of the values added within a window, or within up to twice that, in constant memory. The
// zero value is empty, and its value is 0. Times count from an origin before the first value. The goroutine that adds
// values owns the WindowMax.
type WindowMax[V cmp.Ordered] struct {
	began           time.Duration // start of the current window
	current, before V
}

// Add adds the newest value. The window must be the same each time.
func (m *WindowMax[V]) Add(now time.Duration, value V, window time.Duration) {
	switch elapsed := now - m.began; {
	case elapsed >= 2*window:
		m.began, m.before, m.current = now, value, value
	case elapsed >= window:
		m.began, m.before, m.current = now, m.current, value
	default:
		m.current = max(m.current, value)
	}
}

// Value returns the maximum.
func (m *WindowMax[V]) Value() V { return max(m.current, m.before) }
