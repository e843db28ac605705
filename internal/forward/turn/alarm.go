package turn

import (
	"time"

	"github.com/volsfu/volsfu/internal/congestion/sender/precise"
)

// Alarm is the timer that a worker sleeps on.
type Alarm interface {
	// Set makes Wait end after d and replaces the former time. Set is safe for any goroutine.
	Set(d time.Duration)
	// Wait returns true when woken is signalled, and false when the time of Set has passed. A signal ends Wait at the
	// latest when Set(0) follows it.
	Wait(woken <-chan struct{}) bool
	// Stop releases the resources of the alarm.
	Stop()
}

// timerAlarm is an alarm on time if the system supports that, and otherwise up to 1.1 ms late. Ticks of a pacer are 2
// ms or 16 packets apart, 0.5 ms on a smooth path. Packets that became due while the writer overslept leave together as
// one longer run, 1 ms at most on a smooth path, and the delay counts as residence. The delay does not accumulate,
// because the schedule of the frame sets the time of every packet, or the clock that of every tick, not the former
// tick.
type timerAlarm struct{ *precise.Alarm }

// NewTimer returns an alarm that uses the system's clock.
func NewTimer() Alarm { return timerAlarm{precise.NewAlarm()} }

// Wait implements Alarm.
func (a timerAlarm) Wait(woken <-chan struct{}) bool {
	if received(woken) {
		return true
	}
	a.Alarm.Wait()
	return received(woken)
}

// received receives a signal and reports whether there was one.
func received(woken <-chan struct{}) bool {
	select {
	case <-woken:
		return true
	default:
		return false
	}
}
