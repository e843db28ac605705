package feedback

import (
	"cmp"
	"time"
)

// WindowMax is the largest of the values that were added within a window, or within up to twice that, in memory that does
// not grow. The zero value is empty, and 0. Times count from a beginning before the first value. The goroutine that adds
// values owns the WindowMax.
type WindowMax[V cmp.Ordered] struct {
	began           time.Duration // when this window did
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

// Value is the largest value.
func (m *WindowMax[V]) Value() V { return max(m.current, m.before) }
