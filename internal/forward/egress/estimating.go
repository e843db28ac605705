package egress

import (
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/sender"
	"github.com/volsfu/volsfu/internal/forward/counters"
)

const (
	// never is when something is due that is not.
	never = sender.Never
	// keptResults bounds the room for results that stays with a writer, 90 kB. A report of 25 ms at 300 Mbit/s has 800.
	keptResults = 1 << 10
)

// estimation is what the writer keeps beside a receiver's sender while that estimates.
type estimation struct {
	// begun is when the estimate began, since the engine's start.
	begun time.Duration
	// want and limits are what the sender was told of the receiver's.
	want   int64
	limits *congestion.Limits
	// padding is where the packets of the newest probe come from that the media does not provide.
	padding padding
	// counted is what the writer's counts have of the estimator's.
	counted congestion.Stats
}

// algorithm is how the receiver is estimated: by what it reports of packets, or by what it acknowledges of what is sent
// to it reliably.
func (r *Receiver) algorithm() congestion.Algorithm {
	if r.reliable {
		return congestion.Reliable
	}
	return congestion.GCC
}

// estimate begins to estimate what a receiver can take, or gives that up.
func (w *writer) estimate(r *Receiver, wanted bool) {
	switch {
	case wanted && r.estimation == nil:
		r.estimation = &estimation{begun: w.at}
		r.sender.Start(r.departures.history, congestion.New(r.algorithm(), w.set.cfg.Congestion, w.now), w.now)
		r.window.Store(int64(r.sender.Stats().Window))
		w.stepDue = min(w.stepDue, r.sender.StepDue())
	case !wanted && r.estimation != nil:
		r.estimation = nil
		r.sender.Stop(w.now)
		w.reschedule(r)
		r.publish(w.at)
	}
}

// stepEstimators steps those that are due.
func (w *writer) stepEstimators() {
	w.stepDue = never
	for _, r := range w.receivers {
		if r.sender.StepDue() <= w.at {
			// The first probes follow what is wanted, too.
			r.instruct(w.now)
			w.follow(r, r.sender.Step(w.now))
		}
		w.stepDue = min(w.stepDue, r.sender.StepDue())
	}
}

// instruct tells a receiver's sender what is wanted and what bounds it, if that has changed.
func (r *Receiver) instruct(now time.Time) {
	e := r.estimation
	if want := r.want.Load(); want != e.want {
		e.want = want
		r.sender.Want(congestion.Bitrate(want-1), now)
	}
	if limits := r.limits.Load(); limits != e.limits {
		e.limits = limits
		r.sender.SetLimits(*limits, now)
	}
}

// consult takes what follows from what a receiver's sender has learned, and from what is wanted.
func (w *writer) consult(r *Receiver) {
	r.instruct(w.now)
	w.follow(r, r.sender.Consult(w.now))
}

// follow does what a step of a receiver's sender calls for, and publishes what has come of it.
func (w *writer) follow(r *Receiver, change sender.Change) {
	if change.Probe {
		w.stats.counts[counters.ProbesSent]++
		r.estimation.padding = padding{}
	}
	if change.Next {
		w.reschedule(r)
	}
	w.countEstimation(r)
	r.window.Store(int64(r.sender.Stats().Window))
	r.publish(w.at)
	w.stepDue = min(w.stepDue, r.sender.StepDue())
}

// countEstimation adds what the estimator has counted since the last time to the writer's counts.
func (w *writer) countEstimation(r *Receiver) {
	stats, counted := r.sender.Stats(), &r.estimation.counted
	w.stats.counts[counters.ProbesMeasured] += stats.ProbesMeasured - counted.ProbesMeasured
	w.stats.counts[counters.Overuses] += stats.Overuses - counted.Overuses
	w.stats.counts[counters.Silences] += stats.Silences - counted.Silences
	*counted = *stats
}
