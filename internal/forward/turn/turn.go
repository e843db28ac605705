// Package turn lets a goroutine that delivers work to a sleeping worker run the worker itself.
//
// A burst of packets is often the only work of a worker for some milliseconds. Waking the worker's goroutine means
// waking a sleeping thread on a sleeping processor: about 50 µs of processor time per burst in a virtual machine, as
// much as forwarding the burst to three receivers. The goroutine that delivers the burst therefore does the work,
// unless there is enough work to share among processors.
//
// The turn is the right to do the worker's work. One goroutine has the turn at a time. While the worker sleeps the turn
// is free. A goroutine takes the free turn either to hand it over to the worker's goroutine, which wakes, or to do the
// work.
//
// Workers also have timed work. The goroutine of one worker may do the timed work of the others (Share).
package turn

import (
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/panics"
)

// Work is the work of one worker. All methods except Pending are for the goroutine that has the turn.
type Work interface {
	// Pending reports whether other goroutines have left work. Pending is safe for any goroutine.
	Pending() bool
	// Work works until there is nothing left to do, or until end, a time since the engine's start. Work returns the
	// number of incoming packets processed, and whether all work was done.
	Work(end time.Duration) (packets int, done bool)
	// Idle returns the time of the last clock reading, since the engine's start, and the time from then on during which
	// nothing is due.
	Idle() (at, idle time.Duration)
}

// Turn is the turn of one worker. The methods are safe for any goroutine unless stated otherwise.
type Turn struct {
	work   Work
	clock  *packetlog.Clock
	alarm  Alarm
	free   atomic.Bool
	handed chan struct{}
	// stopping is set when the worker's goroutine is to end.
	stopping atomic.Bool
	// cost is the mean recent cost of an incoming packet, tick that of the work after an alarm.
	cost, tick meanCost
	// due is the time of the worker's next timed work, armed the time at which the alarm wakes the goroutine, both
	// since the engine's start. The goroutine that has the turn sets them.
	due, armed atomic.Int64
	// others are the turns whose timed work the worker's goroutine may do, and that may do this worker's.
	others []*Turn
}

// New returns the turn of a worker that sleeps on the alarm. The caller has the turn.
func New(work Work, clock *packetlog.Clock, alarm Alarm) *Turn {
	return &Turn{work: work, clock: clock, alarm: alarm, handed: make(chan struct{}, 1)}
}

// Run works until Stop. The caller has the turn, and has it again when Run returns.
func (t *Turn) Run() {
	defer t.alarm.Stop()
	timed := false
	for !t.stopping.Load() {
		begin := t.now()
		t.work.Work(Forever)
		at, idle := t.work.Idle()
		if timed {
			t.learnTick(at-begin, true)
		}
		t.arm(at+idle, at)
		if t.yield() {
			t.workForOthers(at)
			timed = t.sleep()
		}
	}
}

// now returns the time since the engine's start.
func (t *Turn) now() time.Duration { return time.Duration(t.clock.Since(t.clock.Now())) }

// Stop makes Run return.
func (t *Turn) Stop() {
	t.stopping.Store(true)
	t.Wake()
}

// Wake makes the worker look for pending work, now or after the work in progress.
func (t *Turn) Wake() {
	if t.take() {
		t.hand()
	}
}

// Release frees the turn of a worker without a goroutine, as if the worker slept. The caller has the turn.
func (t *Turn) Release() { t.free.Store(true) }

// Free reports whether the turn is free.
func (t *Turn) Free() bool { return t.free.Load() }

// Receive takes the turn for a worker without a goroutine, if the turn has been handed over. Receive reports whether it
// was.
func (t *Turn) Receive() bool { return received(t.handed) }

// take takes the turn if it is free and reports whether it did.
func (t *Turn) take() bool { return t.free.Load() && t.free.CompareAndSwap(true, false) }

// hand hands the caller's turn over to the worker's goroutine.
func (t *Turn) hand() {
	// There is only one turn, so the channel has room.
	t.handed <- struct{}{}
	t.alarm.Set(0)
}

// yield frees the turn. yield returns false if work is pending that no other goroutine will do. The caller then still
// has the turn.
func (t *Turn) yield() bool {
	t.free.Store(true)
	if !t.work.Pending() && !t.stopping.Load() {
		return true
	}
	return !t.take()
}

// sleep returns when the worker's goroutine has the turn again. It reports whether the alarm was the reason.
func (t *Turn) sleep() (timed bool) {
	for !t.alarm.Wait(t.handed) {
		if t.take() {
			return true
		}
		// The goroutine that has the turn sets the alarm, but may have done so before that.
		t.workForOthers(t.now())
		t.alarm.Set(guardTime)
	}
	return false
}

// runInline does the work on a goroutine other than the worker's, from now until end at the latest, and returns the
// time. Times are since the engine's start. packets is the number of incoming packets, 0 for timed work. The worker's
// goroutine does the rest. A panic ends the process, because the work is half done for receivers of other clients.
func (t *Turn) runInline(packets int, now, end time.Duration) time.Duration {
	defer panics.Shared()
	for !t.stopping.Load() {
		begin := now
		taken, done := t.work.Work(end)
		now = t.now()
		// If a batch has packets of several publishers, the first goroutine served does the work for all of them.
		if incoming := max(packets, taken); incoming > 0 {
			t.cost.learn(int64(now-begin)/int64(incoming), done)
		} else {
			t.learnTick(now-begin, done)
		}
		if !done {
			break
		}
		at, idle := t.work.Idle()
		t.rearm(at+idle, at)
		if t.yield() {
			return now
		}
		if now >= end {
			break
		}
	}
	t.hand()
	return now
}
