package turn

import (
	"slices"
	"time"
)

const (
	// tickTime bounds the expected time that one goroutine works for all workers with timed work at the same time: half
	// of the time between two ticks of a smooth path. Longer work is shared among processors.
	tickTime = 250 * time.Microsecond
	// guardTime is how much later than its work the alarm of a worker is set that relies on another worker's alarm: one
	// tick of a smooth path. If the goroutine that wakes is late, or a full socket blocks it, the worker's own
	// goroutine does the work, and packets leave by that time later.
	guardTime = 500 * time.Microsecond
)

// Pacers of smooth paths have their ticks at the same times for all receivers, and packets of a track are due at the
// same time for all receivers (internal/congestion/pacing). If workers are due at the same time, one goroutine wakes
// and does the timed work of all of them, as long as the work is short: to wake a thread for each worker 2,000 times a
// second would cost as much as to send the packets. The first worker that goes to sleep sets its alarm to the time of
// the work. The others rely on this alarm, and set their own guardTime later. After an alarm the goroutine does its own
// worker's work, frees the turn, and does the work of the workers that rely on an alarm, or whose goroutines are late.

// Share lets the goroutines of workers do each other's timed work. The workers do not run yet.
func Share(turns []*Turn) {
	for i, t := range turns {
		t.others = slices.Concat(turns[:i], turns[i+1:])
	}
}

// relies reports whether the alarm of a worker rings later than the worker is due.
func (t *Turn) relies() bool { return t.free.Load() && t.armed.Load() > t.due.Load() }

// rings reports whether the alarm of another worker rings at a time.
func (t *Turn) rings(at int64) bool {
	return slices.ContainsFunc(t.others, func(o *Turn) bool { return o.armed.Load() == at && o.free.Load() })
}

// short reports whether the workers that are due at a time have little work.
func (t *Turn) short(due int64) bool {
	total := t.tick.Load()
	for _, o := range t.others {
		if o.due.Load() == due {
			total += o.tick.Load()
		}
	}
	return total <= int64(tickTime)
}

// learnTick updates the mean cost of ticks. A tick that takes longer than twice tickTime counts as that: after one
// short preemption of a goroutine, workers continue to share alarms.
func (t *Turn) learnTick(took time.Duration, done bool) {
	t.tick.learn(int64(min(took, 2*tickTime)), done)
}

// latest returns the latest time for the alarm of a worker that is due at a time.
func (t *Turn) latest(due int64) int64 {
	if t.rings(due) && t.short(due) {
		return due + int64(guardTime)
	}
	return due
}

// arm sets the alarm of a worker whose goroutine goes to sleep. Other workers may rely on the present alarm.
func (t *Turn) arm(due, now time.Duration) {
	t.due.Store(int64(due))
	armed := t.latest(int64(due))
	for _, o := range t.others {
		if at := o.due.Load(); at > int64(now) && at < armed && o.relies() && !t.rings(at) {
			armed = at
		}
	}
	t.set(armed, now)
}

// rearm sets the alarm of a worker whose goroutine sleeps, if the alarm has rung, rings too late, or rings together
// with another. An alarm that rings too early may be the one that others rely on.
func (t *Turn) rearm(due, now time.Duration) {
	t.due.Store(int64(due))
	armed, latest := t.armed.Load(), t.latest(int64(due))
	if armed > latest || armed <= int64(now) || armed == int64(due) && armed < latest {
		t.set(latest, now)
	}
}

func (t *Turn) set(armed int64, now time.Duration) {
	t.armed.Store(armed)
	t.alarm.Set(time.Duration(armed) - now)
}

// workForOthers does the timed work of other workers that rely on an alarm, or whose goroutines are late. The caller
// does not need the turn.
func (t *Turn) workForOthers(now time.Duration) {
	for _, o := range t.others {
		due := time.Duration(o.due.Load())
		if due <= now && (o.relies() || o.free.Load() && due+guardTime <= now) && o.take() {
			now = o.runInline(0, now, now+tickTime)
		}
	}
}

// WakeSoon is Wake for work that may wait for guardTime: if timed work is due by then, no goroutine is woken before.
func (t *Turn) WakeSoon() {
	if t.free.Load() && time.Duration(t.due.Load()) <= t.now()+guardTime {
		return
	}
	t.Wake()
}
