// Package precise has the timer with which the owner of a Sender waits for the next tick. An idle Go process sleeps in
// whole milliseconds, so timers of package time are up to 1.1 ms late: half of a pacer's tick. A Timer has no goroutine
// of its own. An Alarm is for a goroutine that waits for nothing else.
package precise

import "time"

// Timer is a time.Timer that is at most about 0.1 ms late while the process is otherwise idle, on systems that support
// this (Linux), and an ordinary timer elsewhere. One goroutine waits for the timer and finally stops it; any goroutine
// may reset it until then.
type Timer struct {
	// C receives the time, as that of a time.Timer does.
	C     <-chan time.Time
	timer *time.Timer
	nudge nudge
}

// NewTimer returns a timer that fires after d.
func NewTimer(d time.Duration) *Timer {
	t := &Timer{timer: time.NewTimer(d), nudge: newNudge()}
	t.C = t.timer.C
	t.nudge.after(d)
	return t
}

// Reset makes the timer fire after d, instead of the previous setting.
func (t *Timer) Reset(d time.Duration) {
	t.timer.Reset(d)
	t.nudge.after(d)
}

// Stop ends the timer, which must not be used afterwards.
func (t *Timer) Stop() {
	t.timer.Stop()
	t.nudge.close()
}
