package forward

import "time"

// alarm is what a writer sleeps by: it wakes for the next tick of a pacer, for housekeeping, and when there is something to read.
type alarm interface {
	// wait returns true when it is woken, and false after d, or after what rearm has said meanwhile.
	wait(d time.Duration, woken <-chan struct{}) bool
	// rearm makes wait end after d. It is called by another goroutine.
	rearm(d time.Duration)
	// stop gives up what the alarm holds.
	stop()
}

// timerAlarm is a timer of the Go runtime. A process that is idle sleeps in whole milliseconds (epoll_wait), so a timer ends up to 1.1 ms late, and one below a
// millisecond takes 1.1 ms. Ticks are 2 ms apart, or 16 packets; what became due while the writer overslept leaves with them, as one longer run, and counts
// as residence. The delay does not add up, since every packet is due by its frame's schedule and not by the tick before. Threads of their own that sleep by
// clock_nanosleep would wake within 0.1 ms, at the price of two context switches per tick.
type timerAlarm struct{ timer *time.Timer }

func newTimerAlarm() *timerAlarm { return &timerAlarm{timer: time.NewTimer(time.Hour)} }

func (a *timerAlarm) wait(d time.Duration, woken <-chan struct{}) bool {
	a.timer.Reset(d)
	select {
	case <-woken:
		return true
	case <-a.timer.C:
		return false
	}
}

func (a *timerAlarm) rearm(d time.Duration) { a.timer.Reset(d) }

func (a *timerAlarm) stop() { a.timer.Stop() }
