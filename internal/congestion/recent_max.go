package congestion

import "time"

// recentMax is the largest of a series in this half of dropTimeout and the one before.
type recentMax struct {
	began            time.Duration
	current, earlier float64
}

func (m *recentMax) add(now time.Duration, value float64) {
	const epoch = dropTimeout / 2
	switch elapsed := now - m.began; {
	case elapsed >= 2*epoch:
		m.began, m.current, m.earlier = now, value, 0
	case elapsed >= epoch:
		m.began, m.current, m.earlier = now, value, m.current
	default:
		m.current = max(m.current, value)
	}
}

func (m *recentMax) value() float64 { return max(m.current, m.earlier) }
