package precise

import (
	"sync"
	"time"
)

// Alarm wakes a goroutine at a set time, which any goroutine may change. The goroutine waits for the alarm alone, so
// that, on Linux, Go's poller runs the goroutine as soon as the time has passed. A goroutine that waits for the channel
// of a Timer costs about four times as much processor time: the scheduler finds the due timer while it looks for work,
// and then wakes another thread to look for more.
type Alarm struct {
	// timer replaces the nudge on systems without one.
	timer *time.Timer
	nudge nudge
	// mu guards stopped: the descriptor of a stopped alarm may belong to another file.
	mu      sync.Mutex
	stopped bool
}

// NewAlarm returns an alarm that is not set.
func NewAlarm() *Alarm {
	a := &Alarm{nudge: newNudge()}
	if !a.nudge.works() {
		a.timer = time.NewTimer(time.Hour)
		a.timer.Stop()
	}
	return a
}

// Set makes Wait return after d, at once if d is not positive, and replaces the former time, even if it has passed.
// Set is safe for any goroutine. After Stop it has no effect.
func (a *Alarm) Set(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.stopped:
	case a.timer != nil:
		a.timer.Reset(d)
	default:
		a.nudge.after(d)
	}
}

// Wait returns when the time of the last Set has passed. One goroutine at a time waits. Wait does not return before Set
// has been called again.
func (a *Alarm) Wait() {
	if a.timer != nil {
		<-a.timer.C
		return
	}
	a.nudge.wait()
}

// Stop releases the resources of the alarm. Wait must not be called afterwards.
func (a *Alarm) Stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stopped = true
	if a.timer != nil {
		a.timer.Stop()
	}
	a.nudge.close()
}
