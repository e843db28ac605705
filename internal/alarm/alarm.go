// Package alarm has timers that are on time. A process of Go that has nothing to do sleeps in whole milliseconds, so that package time's timers come up to 1.1 ms
// late: as much as half of a pacer's tick. A Timer has no goroutine of its own.
package alarm

import "time"

// Timer is a time.Timer that comes some 0.1 ms late at most while the process has nothing else to do, where the system allows for it (Linux), and is as others are elsewhere. One goroutine waits for it, and stops
// it in the end; any may reset it until then.
type Timer struct {
	// C brings the time, as that of a time.Timer does.
	C     <-chan time.Time
	timer *time.Timer
	nudge nudge
}

// New makes a timer that goes off after d.
func New(d time.Duration) *Timer {
	t := &Timer{timer: time.NewTimer(d), nudge: newNudge()}
	t.C = t.timer.C
	t.nudge.after(d)
	return t
}

// Reset makes it go off after d, instead of what was set before.
func (t *Timer) Reset(d time.Duration) {
	t.timer.Reset(d)
	t.nudge.after(d)
}

// Stop ends it. It is not used afterwards.
func (t *Timer) Stop() {
	t.timer.Stop()
	t.nudge.close()
}
