// Package turn lets a goroutine that brings work to a sleeping worker do the work itself.
//
// A burst of packets is often all that a worker gets for some milliseconds. To wake a goroutine for it takes a thread
// that sleeps, on a processor that sleeps: about 50 µs of processor time for each burst in a virtual machine, as much
// as forwarding the burst to three receivers. So the goroutine that brings the burst does the work, unless the work is
// so much that processors should share it.
//
// The turn is the right to do the worker's work. One goroutine has the turn at a time. While the worker sleeps the turn
// is free: a goroutine takes it to wake the worker's goroutine, to which it hands the turn over, or to do the work.
package turn

import (
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/panics"
)

// Work is what a worker does. All methods except Pending are for the goroutine that has the turn.
type Work interface {
	// Pending reports whether other goroutines have left something to do. It is safe for any goroutine.
	Pending() bool
	// Work works until nothing is left to do, or until the end, since the engine's start. It reports whether all was
	// done, and returns the number of incoming packets that it has taken.
	Work(end time.Duration) (packets int, done bool)
	// Idle returns the time of the last reading of the clock, since the engine's start, and for how long from then on
	// nothing is due.
	Idle() (at, idle time.Duration)
}

// Turn is the turn of one worker. Its methods are safe for any goroutine, unless they say otherwise.
type Turn struct {
	work   Work
	clock  *packetlog.Clock
	alarm  Alarm
	free   atomic.Bool
	handed chan struct{}
	// stopping is set when the worker's goroutine is to end.
	stopping atomic.Bool
	// cost is what an incoming packet has lately cost, in nanoseconds.
	cost atomic.Int64
	// armed is when the alarm wakes the goroutine, since the engine's start. It belongs to the goroutine that has the
	// turn.
	armed time.Duration
}

// New returns the turn of a worker. The caller has the turn. The worker sleeps by the alarm.
func New(work Work, clock *packetlog.Clock, alarm Alarm) *Turn {
	return &Turn{work: work, clock: clock, alarm: alarm, handed: make(chan struct{}, 1)}
}

// Run works until Stop. The caller has the turn, and has it again when Run returns.
func (t *Turn) Run() {
	defer t.alarm.Stop()
	for !t.stopping.Load() {
		t.work.Work(Forever)
		at, idle := t.work.Idle()
		t.armed = at + idle
		t.alarm.Set(idle)
		if t.yield() {
			t.sleep()
		}
	}
}

// Stop makes Run return.
func (t *Turn) Stop() {
	t.stopping.Store(true)
	t.Wake()
}

// Wake makes the worker look at what is pending, now or after the work at hand.
func (t *Turn) Wake() {
	if t.take() {
		t.hand()
	}
}

// Release gives the turn of a worker up that is not run, as if the worker slept. The caller has the turn.
func (t *Turn) Release() { t.free.Store(true) }

// Free reports whether nobody has the turn.
func (t *Turn) Free() bool { return t.free.Load() }

// Receive takes the turn for a worker that is not run, if the turn has been handed to the worker's goroutine. It
// reports whether it was.
func (t *Turn) Receive() bool {
	select {
	case <-t.handed:
		return true
	default:
		return false
	}
}

// take takes the turn if it is free.
func (t *Turn) take() bool { return t.free.Load() && t.free.CompareAndSwap(true, false) }

// hand gives the turn that the caller has to the worker's goroutine.
func (t *Turn) hand() {
	// There is one turn, so there is room.
	t.handed <- struct{}{}
}

// yield gives the turn up. It returns false if something is pending of which nobody has been told. Then the caller
// still has the turn.
func (t *Turn) yield() bool {
	t.free.Store(true)
	if !t.work.Pending() && !t.stopping.Load() {
		return true
	}
	return !t.take()
}

// retryTime is after how long the worker's goroutine looks again if it was woken by time and found the turn taken: the
// goroutine that has the turn may have set the alarm before.
const retryTime = time.Millisecond

// sleep returns when the worker's goroutine has the turn again.
func (t *Turn) sleep() {
	for !t.alarm.Wait(t.handed) {
		if t.take() {
			return
		}
		t.alarm.Set(retryTime)
	}
}

// serve does the work on a goroutine that is not the worker's, from now until the end at the latest, and returns the
// time. Times are since the engine's start. The worker's goroutine does the rest. A panic ends the process: the work is
// half done for receivers of other clients.
func (t *Turn) serve(packets int, now, end time.Duration) time.Duration {
	defer panics.Shared()
	for !t.stopping.Load() {
		begin := now
		taken, done := t.work.Work(end)
		now = time.Duration(t.clock.Since(t.clock.Now()))
		// Of a batch of several publishers, the goroutine that is served first does the work for all of them.
		t.learnCost(now-begin, max(packets, taken), done)
		if !done {
			break
		}
		if at, idle := t.work.Idle(); at+idle < t.armed {
			t.armed = at + idle
			t.alarm.Set(idle)
		}
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
