// Package recent owns the largest value of a series of late, in memory that does not grow. Whoever adds the values owns the state.
package recent

import (
	"cmp"
	"time"
)

// Max is the largest of the values that were added within a window, or within up to twice that. The zero value is empty, and at 0; time counts from whatever begins
// before the first value.
type Max[V cmp.Ordered] struct {
	began           time.Duration // when this window did
	current, before V
}

// Add adds the newest value. The window has to be the same each time.
func (m *Max[V]) Add(now time.Duration, value V, window time.Duration) {
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
func (m *Max[V]) Value() V { return max(m.current, m.before) }
