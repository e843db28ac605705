package forward

import (
	"math"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/recent"
)

const (
	// stepInterval is the shortest time between two looks at estimators that are due by time: what they notice so, silences and the time for a probe,
	// counts in hundreds of milliseconds.
	stepInterval = 5 * time.Millisecond
	// never is when something is due that is not.
	never = time.Duration(math.MaxInt64)
	// maxUnsaid bounds the bytes that are told as one: with the packet that exceeds it they are below the 65,535 that an estimator takes. What is queued between two
	// looks at the clock, a run of 43 packets, may be 69 kB.
	maxUnsaid = 48 << 10
	// keptResults bounds the room for results that stays with a writer, 90 kB. A report of 25 ms at 300 Mbit/s has 800.
	keptResults = 1 << 10
)

// estimation is the estimate of one receiver, made of what is sent to it and what it reports. The writer owns it.
type estimation struct {
	estimator congestion.Estimator
	// at is the time that the estimator was told last, and due when it is to be stepped, since the engine's start.
	at  time.Time
	due time.Duration
	// unsaid are the bytes sent at that time that the estimator was not told of yet: those of a run are told as one, at a fifth of the cost.
	unsaid int
	// begun is when the first packet was numbered. video is set once one was of video: the estimator is told nothing before, since its first probes follow what it
	// is told, and padding is video that was sent.
	begun time.Duration
	video bool
	// known is set once the receiver has reported something.
	known bool
	// want and limits are what the estimator was told of the receiver's.
	want   int64
	limits *congestion.Limits
	// clusters are the latest probes.
	clusters congestion.Clusters
	// padding is where the packets of the newest probe come from that the media does not provide.
	padding padding
	// path is what the pacer goes by, the zero Path before the receiver has reported something.
	path pacing.Path
	// trips are the latest round trips, queues included: the estimator's own is an average, and late where a queue builds up.
	trips recent.Max[time.Duration]
	// counted is what the writer's counts have of the estimator's.
	counted congestion.Stats
}

// newEstimation begins to estimate.
func newEstimation(e congestion.Estimator, now time.Time) *estimation {
	return &estimation{estimator: e, at: now, due: never}
}

// newEstimator makes an estimator that fits what the receiver reports: arrivals of packets, or what it acknowledges of what is sent to it reliably.
func (r *Receiver) newEstimator(cfg congestion.Config, now time.Time) congestion.Estimator {
	if r.reliable {
		return congestion.NewReliable(cfg, now)
	}
	return congestion.NewGCC(cfg, now)
}

// pass tells the estimator what was sent, and returns the time for what follows: the estimator's never goes back, while a report may have come before packets that
// were sent when it was read.
func (e *estimation) pass(now time.Time) time.Time {
	if e.unsaid > 0 {
		e.estimator.Sent(e.at, e.unsaid)
		e.unsaid = 0
	}
	if now.After(e.at) {
		e.at = now
	}
	return e.at
}

// sent takes a packet with its number.
func (e *estimation) sent(number int64, size int, kind class, probing bool, now time.Time) {
	if e.video = e.video || kind != classAudio; !e.video {
		return
	}
	if now.After(e.at) || e.unsaid > maxUnsaid {
		e.pass(now)
	}
	e.unsaid += size
	if probing {
		e.clusters.Sent(number)
	}
}

// estimate begins to estimate what a receiver can take, or gives that up.
func (w *writer) estimate(r *Receiver, wanted bool) {
	switch {
	case wanted && r.estimation == nil:
		r.estimation = newEstimation(r.newEstimator(w.engine.cfg.Congestion, w.now), w.now)
		r.estimation.begun = w.at
		r.window.Store(int64(r.estimation.estimator.Stats().Window))
		// Its first probes are to follow the first packets.
		w.stepAt(r, w.at)
	case !wanted && r.estimation != nil:
		r.estimation = nil
		r.pacer.EndProbe()
		w.reschedule(r)
		w.limit(r, pacing.Path{})
		r.publish(w.at)
	}
}

// learn takes what one report of a receiver, which came at a time, says of packets to it. This is the one place where results arrive. A publisher's losses are
// not among them: numbers are given to what is sent. Probes are filled in.
func (w *writer) learn(r *Receiver, results []congestion.PacketResult, arrived time.Time) {
	e := r.estimation
	if e == nil || len(results) == 0 {
		return
	}
	for i := range results {
		results[i].Probe = e.clusters.Of(results[i].Sequence)
	}
	e.estimator.Report(e.pass(arrived), results)
	e.known = true
	e.trips.Add(w.at, congestion.LongestTrip(arrived, results), feedback.QueueMemory)
}

// stepAt has a receiver's estimator stepped at a time, if that is before what was planned.
func (w *writer) stepAt(r *Receiver, at time.Duration) {
	r.estimation.due = min(r.estimation.due, at)
	w.stepDue = min(w.stepDue, r.estimation.due)
}

// stepEstimators steps those that are due.
func (w *writer) stepEstimators() {
	w.stepDue = never
	for _, r := range w.receivers {
		e := r.estimation
		if e == nil {
			continue
		}
		if e.due <= w.at {
			// The first probes follow what is wanted, too.
			r.instruct(e.pass(w.now))
			e.estimator.Step(e.at)
			w.consult(r)
		}
		w.stepDue = min(w.stepDue, e.due)
	}
}

// instruct tells a receiver's estimator what is wanted and what bounds it, where that has changed.
func (r *Receiver) instruct(now time.Time) {
	e := r.estimation
	if want := r.want.Load(); want != e.want {
		e.want = want
		e.estimator.Want(now, congestion.Bitrate(want-1))
	}
	if limits := r.limits.Load(); limits != e.limits {
		e.limits = limits
		e.estimator.SetLimits(now, *limits)
	}
}

// consult passes between a receiver and its estimator after this was stepped: what is wanted, the estimate, a probe, and when to step it again.
func (w *writer) consult(r *Receiver) {
	e := r.estimation
	now := e.pass(w.now)
	r.instruct(now)
	if !r.pacer.Probing() {
		if cluster, ok := e.estimator.Probe(now); ok {
			w.probe(r, cluster)
		}
	}
	w.countEstimation(e)
	r.window.Store(int64(e.counted.Window))
	r.publish(w.at)
	if path := e.counted.Path(); e.known && path != e.path {
		e.path = path
		w.limit(r, path)
	}
	e.due = never
	if next := e.estimator.Next(); !next.IsZero() {
		w.stepAt(r, max(next.Sub(w.engine.started), w.at+stepInterval))
	}
}

// countEstimation adds what the estimator has counted since the last time to the writer's counts.
func (w *writer) countEstimation(e *estimation) {
	stats := e.estimator.Stats()
	w.stats.counts[probesMeasured] += stats.ProbesMeasured - e.counted.ProbesMeasured
	w.stats.counts[overuses] += stats.Overuses - e.counted.Overuses
	w.stats.counts[silences] += stats.Silences - e.counted.Silences
	e.counted = stats
}
