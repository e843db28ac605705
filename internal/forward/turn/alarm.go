package turn

import (
	"time"

	"github.com/volsfu/volsfu/internal/alarm"
)

// Alarm is what a worker sleeps by.
type Alarm interface {
	// Set makes Wait end after d, instead of what was set before. It is safe for any goroutine.
	Set(d time.Duration)
	// Wait returns true when the worker is woken, and false when the time is up that was set.
	Wait(woken <-chan struct{}) bool
	// Stop gives up what the alarm holds.
	Stop()
}

// timerAlarm is a timer that is on time if the system allows for it, and else up to 1.1 ms late. Ticks of a pacer are 2
// ms apart, or 16 packets. What became due while the writer overslept leaves with them, as one longer run, and counts
// as residence. The delay does not add up, since every packet is due by its frame's schedule and not by the tick
// before.
type timerAlarm struct{ timer *alarm.Timer }

// NewTimer returns an alarm by the system's clock.
func NewTimer() Alarm { return &timerAlarm{timer: alarm.New(time.Hour)} }

// Set implements Alarm.
func (a *timerAlarm) Set(d time.Duration) { a.timer.Reset(d) }

// Wait implements Alarm.
func (a *timerAlarm) Wait(woken <-chan struct{}) bool {
	select {
	case <-woken:
		return true
	case <-a.timer.C:
		return false
	}
}

// Stop implements Alarm.
func (a *timerAlarm) Stop() { a.timer.Stop() }
