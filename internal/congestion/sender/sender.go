package sender

import (
	"math"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/recent"
)

const (
	// Never is the due time of what is not due.
	Never = time.Duration(math.MaxInt64)
	// stepInterval is the shortest time between two steps that are due by time. The estimator notices silences and the
	// time for a probe by them, which count in hundreds of milliseconds.
	stepInterval = 5 * time.Millisecond
	// maxUntold bounds the bytes that the estimator is told of as one packet: with the packet that exceeds it they are
	// below the 65,535 that an estimator takes. A run of 43 packets that leaves at one time may be 69 kB.
	maxUntold = 48 << 10
	// maxProbeFactor and probeGrace bound how long a probe may take that finds too little to send: twice its length, and
	// what a late timer takes. What has left by then at half its rate tells nothing false, and what is slower is not
	// measured, for lack of bytes.
	maxProbeFactor = 2
	probeGrace     = 5 * time.Millisecond
)

// Options say how a Sender treats a receiver.
type Options struct {
	// Plan is how frames are spread.
	Plan pacing.Plan
	// Grace is how long the start rate limits what is sent while nothing has been reported. 0 sends without a limit until
	// the first report.
	Grace time.Duration
	// Idle is the silence after which no probe begins, since there is nothing recent to pad it with. 0 is any.
	Idle time.Duration
	// Look is how often StepDue comes without another reason: packets that leave make steps of the estimator due, of which
	// the Sender learns by looking. 0 is for callers that call Consult by themselves ten times per second.
	Look time.Duration
}

// Sender sends packets P and retransmissions R to one receiver. Without an estimator it paces by the plan alone. Times
// of the pacer count from the start that New was given. Of the pacer's methods the Sender itself calls SetPath and
// Probe: a caller that does so, too, is overruled by the next Consult.
type Sender[P, R any] struct {
	*pacing.Pacer[P, R]
	options Options
	started time.Time

	history   *History
	estimator congestion.Estimator
	clusters  congestion.Clusters
	// at is the time that the estimator was told last, and untold are the bytes sent at that time that it was not told of:
	// the packets of a run are told as one, at a fifth of the cost.
	at     time.Time
	untold int
	// video is set once a packet has left that is not of audio, the first at began and, if Options.Idle asks, the latest
	// at latest.
	video         bool
	began, latest time.Time
	// reported is set once the receiver has reported on a packet.
	reported bool
	// next is when the estimator is to be stepped, due when Step is.
	next, due time.Duration
	path      pacing.Path
	stats     *congestion.Stats
	// trips are the latest round trips, queues included: the estimator's own is an average, and late when a queue grows.
	trips recent.Max[time.Duration]
}

// unknown are the Stats without an estimator.
var unknown congestion.Stats

// New makes a Sender without an estimator.
func New[P, R any](options Options, started time.Time) *Sender[P, R] {
	s := &Sender[P, R]{Pacer: pacing.NewPacer[P, R](options.Plan), options: options, started: started}
	s.Stop(started)
	return s
}

// Start begins to send by a history, which may have packets already, and to estimate, unless the estimator is nil.
func (s *Sender[P, R]) Start(history *History, estimator congestion.Estimator, now time.Time) {
	s.Stop(now)
	s.history, s.estimator, s.at = history, estimator, now
	if estimator == nil {
		return
	}
	// The first probes follow the first packets.
	stats := estimator.Stats()
	s.stats, s.next, s.due = &stats, now.Sub(s.started), now.Sub(s.started)
	s.follow(now)
}

// Stop gives up the history and the estimate. The plan alone says when packets leave.
func (s *Sender[P, R]) Stop(now time.Time) {
	s.EndProbe()
	if s.path != (pacing.Path{}) {
		s.SetPath(pacing.Path{}, now.Sub(s.started))
	}
	*s = Sender[P, R]{Pacer: s.Pacer, options: s.options, started: s.started, next: Never, due: Never, stats: &unknown}
}

// Sent takes a packet that leaves, with its size on the wire in bytes, and returns its place in the order of sending.
// The estimator is told of nothing before the first packet that is not of audio: its first probes follow what it is
// told, and are padded with such packets. Start must have been called.
func (s *Sender[P, R]) Sent(ssrc uint32, sequence uint16, size int, kind feedback.PacketKind, now time.Time) int64 {
	number := s.history.sent(ssrc, sequence, size, kind, now)
	if s.estimator == nil {
		return number
	}
	if !s.video {
		if kind == feedback.Audio {
			return number
		}
		s.video, s.began = true, now
	}
	if now.After(s.at) || s.untold > maxUntold {
		s.tell(now)
	}
	s.untold += size
	if s.options.Idle > 0 {
		s.latest = now
	}
	if s.Probing() {
		s.clusters.Sent(number)
	}
	return number
}

// tell tells the estimator what was sent, and returns the time for what follows: the estimator's never goes back, while
// a report may have arrived before packets that were sent when it was read.
func (s *Sender[P, R]) tell(now time.Time) time.Time {
	if s.untold > 0 {
		s.estimator.Sent(s.at, s.untold)
		s.untold = 0
	}
	if now.After(s.at) {
		s.at = now
	}
	return s.at
}

// Spend accounts for a packet that has left, as the pacer does. If it completes a probe, a step is due, since another
// probe may wait.
func (s *Sender[P, R]) Spend(bytes int) (probed bool) {
	probed = s.Pacer.Spend(bytes)
	if probed && s.estimator != nil {
		s.next, s.due = 0, 0
	}
	return probed
}

// Report takes a report that arrived at a time, and appends to results, which is empty, what is new in it. Without a
// history there is nothing to report on.
func (s *Sender[P, R]) Report(
	packet []byte, arrived, now time.Time, results []feedback.PacketResult,
) []feedback.PacketResult {
	if s.history == nil {
		return results
	}
	results = s.history.report(packet, arrived, results)
	s.Learn(results, arrived, now)
	return results
}

// Learn takes what became of packets, by one report that arrived at a time.
func (s *Sender[P, R]) Learn(results []feedback.PacketResult, arrived, now time.Time) {
	if s.estimator == nil || len(results) == 0 {
		return
	}
	for i := range results {
		results[i].Probe = s.clusters.Of(results[i].Sequence)
	}
	s.estimator.Report(s.tell(arrived), results)
	s.reported = true
	s.trips.Add(now.Sub(s.started), congestion.LongestTrip(arrived, results), feedback.QueueMemory)
}

// Want says what would be sent if the receiver could take it.
func (s *Sender[P, R]) Want(rate congestion.Bitrate, now time.Time) {
	if s.estimator != nil {
		s.estimator.Want(s.tell(now), rate)
	}
}

// SetLimits changes the limits of the estimate.
func (s *Sender[P, R]) SetLimits(limits congestion.Limits, now time.Time) {
	if s.estimator != nil {
		s.estimator.SetLimits(s.tell(now), limits)
	}
}

// Change says what a step has changed for the caller.
type Change struct {
	// Probe is set if a probe has begun.
	Probe bool
	// Next is set if the pacer's Next may have changed.
	Next bool
}

// StepDue is when Step is due, Never if there is nothing to step.
func (s *Sender[P, R]) StepDue() time.Duration { return s.due }

// Step lets time pass for the estimator if that is due, and takes what follows.
func (s *Sender[P, R]) Step(now time.Time) Change {
	if s.estimator != nil && s.next <= now.Sub(s.started) {
		s.estimator.Step(s.tell(now))
	}
	return s.Consult(now)
}

// Consult takes what follows from reports, from what is wanted and from the limits: the path to the pacer, and a probe.
func (s *Sender[P, R]) Consult(now time.Time) (change Change) {
	if s.estimator == nil {
		return change
	}
	told, at := s.tell(now), now.Sub(s.started)
	if !s.Probing() && s.probes(now) {
		if c, ok := s.estimator.Probe(told); ok {
			s.clusters.Begin(c.ID)
			s.Probe(int64(c.Rate), c.MinBytes, c.MinPackets, at+maxProbeFactor*c.Duration+probeGrace, at)
			change = Change{Probe: true, Next: true}
		}
	}
	*s.stats = s.estimator.Stats()
	if s.follow(now) {
		change.Next = true
	}
	s.next = Never
	if next := s.estimator.Next(); !next.IsZero() {
		s.next = max(next.Sub(s.started), at+stepInterval)
	}
	s.due = s.next
	if s.options.Look > 0 {
		s.due = min(s.due, at+s.options.Look)
	}
	if s.graced(now) && s.video {
		s.due = min(s.due, s.began.Add(s.options.Grace).Sub(s.started))
	}
	return change
}

// probes reports whether a probe may begin.
func (s *Sender[P, R]) probes(now time.Time) bool {
	return s.options.Idle == 0 || !s.latest.IsZero() && now.Sub(s.latest) <= s.options.Idle
}

// follow gives the pacer the path if that has changed, and reports whether it has.
func (s *Sender[P, R]) follow(now time.Time) bool {
	if s.options.Plan.Off() {
		return false
	}
	path := pacing.Path{}
	if s.reported || s.graced(now) {
		path = s.stats.Path()
	}
	if path == s.path {
		return false
	}
	s.path = path
	s.SetPath(path, now.Sub(s.started))
	return true
}

// graced reports whether the start rate limits what is sent, since a first report may yet come.
func (s *Sender[P, R]) graced(now time.Time) bool {
	return !s.reported && s.options.Grace > 0 && (!s.video || now.Sub(s.began) < s.options.Grace)
}

// Reported reports whether the receiver has reported on a packet.
func (s *Sender[P, R]) Reported() bool { return s.reported }

// Stats are those of the estimator as of the last step or Consult. The caller does not change them.
func (s *Sender[P, R]) Stats() *congestion.Stats { return s.stats }

// LongestTrip is the longest of the latest round trips, queues included, 0 if none is known.
func (s *Sender[P, R]) LongestTrip() time.Duration { return s.trips.Value() }

// Pad sends padding as far as the probe under way asks for it in this tick. repeat sends a recent packet again, and
// reports false if there is none.
func (s *Sender[P, R]) Pad(repeat func() bool) {
	for s.Pads() {
		if !repeat() {
			s.Dry()
			return
		}
	}
}
