package forward

import (
	"time"

	"github.com/volsfu/volsfu/internal/alarm"
)

// sleeper is what a writer sleeps by: it wakes for the next tick of a pacer, for housekeeping, and when there is something to read.
type sleeper interface {
	// set makes wait end after d, instead of what was set before. It is safe for any goroutine.
	set(d time.Duration)
	// wait returns true when it is woken, and false when the time is up that was set.
	wait(woken <-chan struct{}) bool
	// stop gives up what it holds.
	stop()
}

// timerAlarm is a timer that is on time where the system allows for it, and else up to 1.1 ms late. Ticks are 2 ms apart, or 16 packets; what became due while the writer overslept leaves with them, as one
// longer run, and counts as residence. The delay does not add up, since every packet is due by its frame's schedule and not by the tick before.
type timerAlarm struct{ timer *alarm.Timer }

func newTimerAlarm() *timerAlarm { return &timerAlarm{timer: alarm.New(time.Hour)} }

func (a *timerAlarm) set(d time.Duration) { a.timer.Reset(d) }

func (a *timerAlarm) wait(woken <-chan struct{}) bool {
	select {
	case <-woken:
		return true
	case <-a.timer.C:
		return false
	}
}

func (a *timerAlarm) stop() { a.timer.Stop() }
