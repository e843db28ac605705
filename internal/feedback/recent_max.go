package feedback

import "time"

// QueueMemory is how long a queue that has emptied is remembered at least, for the sake of frames that it held up: the long deadline of one.
const QueueMemory = 250 * time.Millisecond

// RecentMax is the largest of the values that were added within a window, or within up to twice that. The zero value is empty, and at 0.
type RecentMax struct {
	began           time.Time // when this window did
	current, before int64
}

// Add adds the newest value. The window has to be the same each time.
func (m *RecentMax) Add(now time.Time, value int64, window time.Duration) {
	switch elapsed := now.Sub(m.began); {
	case elapsed >= 2*window:
		m.began, m.before, m.current = now, value, value
	case elapsed >= window:
		m.began, m.before, m.current = now, m.current, value
	default:
		m.current = max(m.current, value)
	}
}

// Value is the largest value.
func (m *RecentMax) Value() int64 { return max(m.current, m.before) }
