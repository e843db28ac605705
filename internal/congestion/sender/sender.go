package sender

import (
	"math"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/feedback"
)

const (
	// Never is the due time if nothing is due.
	Never = time.Duration(math.MaxInt64)
	// UsualGrace is the Grace of a client and of direct mode: ten times the longest interval between two reports at 50
	// ms. A receiver that never reports limits nothing.
	UsualGrace = time.Second
	// UsualIdle is the Idle of a client and of direct mode. Packets sent before a longer pause do not show whether the
	// path still carries their rate.
	UsualIdle = 500 * time.Millisecond
	// MaxPadding is how many of the latest packets of a stream a probe of a client or of direct mode repeats, from the
	// newest on, before it begins with the newest again.
	MaxPadding = 256
	// LookInterval is how often the estimator is consulted without a report: departing packets and the passing of time
	// make steps of the estimator due as well.
	LookInterval = 100 * time.Millisecond
	// stepInterval is the shortest time between two timed steps. A step detects silence and starts probes, at intervals
	// of hundreds of milliseconds.
	stepInterval = 5 * time.Millisecond
	// maxPending bounds the bytes that the estimator receives as one packet. With the packet that exceeds the bound
	// they stay below the 65,535 that an estimator accepts. A run of 43 packets that leaves at one time may have 69 kB.
	maxPending = 48 << 10
	// maxProbeFactor and probeGrace bound a probe that has too few packets: twice the length of the probe, and the
	// delay of a late timer. A probe at half its rate still measures correctly. A slower probe has too few bytes for a
	// measurement.
	maxProbeFactor = 2
	probeGrace     = 5 * time.Millisecond
)

// Options configure a Sender.
type Options struct {
	// Plan is how frames are spread.
	Plan pacing.Plan
	// Grace is how long the start rate limits the sender before the first report. With 0 the sender has no limit until
	// the first report.
	Grace time.Duration
	// Idle is the longest pause in sending after which a probe may still begin: after a longer pause no recent packet
	// is left as padding. 0 is no limit.
	Idle time.Duration
	// Look is the longest time between two steps. It is 0 if the caller itself calls Consult every LookInterval.
	Look time.Duration
	// Spacing is shared with other senders, or nil.
	Spacing *Spacing
}

// Sender sends packets P and retransmissions R to one receiver. Without an estimator the plan alone paces packets.
// Times of the pacer count from the start that New was given. The Sender itself calls SetPath, SetInFlight and Probe of
// the pacer: the next Consult overrides a path or a probe that the caller sets.
type Sender[P, R any] struct {
	pacing.Pacer[P, R]
	// grace, idle and look are those of the Options.
	grace, idle, look time.Duration
	spacing           *Spacing
	started           time.Time
	estimation
}

// estimation is the state between Start and Stop.
type estimation struct {
	history   *History
	estimator congestion.Estimator
	clusters  congestion.Clusters
	// at is the latest time passed to the estimator. pending is the number of bytes sent at that time and not passed
	// yet: one call for the packets of a run costs a fifth of one call per packet.
	at      time.Time
	pending int
	// video is set once a packet other than audio has left.
	video bool
	// suspended is set while reports are not passed on. unreported is the number of bytes in flight at the end of that
	// time, until the next report. It is below 2^31: a history holds 32,768 packets.
	suspended  bool
	unreported int32
	// began is the time of the first packet other than audio, latest the time of the last one, kept only if
	// Options.Idle is set.
	began, latest time.Time
	// reported is set once the receiver has reported on a packet.
	reported bool
	// next is the time of the estimator's next step, due the time of the next call of Step. scheduled is set once they
	// include a packet that left after the last Consult.
	scheduled bool
	// moved is the time of the last Move in ms since the start, modulo 2^32, 0 before the first one.
	moved     uint32
	next, due time.Duration
	path      pacing.Path
	stats     *congestion.Stats
	// trips holds the latest round trips, queues included. The estimator's own value is an average, which lags behind a
	// growing queue.
	trips feedback.WindowMax[time.Duration]
}

// unknown are the Stats without an estimator.
var unknown congestion.Stats

// New returns a Sender without an estimator.
func New[P, R any](options Options, started time.Time) *Sender[P, R] {
	s := &Sender[P, R]{
		Pacer: *pacing.NewPacer[P, R](options.Plan), grace: options.Grace, idle: options.Idle, look: options.Look,
		spacing: options.Spacing, started: started,
	}
	if s.spacing == nil {
		s.spacing = new(Spacing)
	}
	s.Stop(started)
	return s
}

// Start begins to send with a history, which may already have packets, and to estimate unless the estimator is nil.
func (s *Sender[P, R]) Start(history *History, estimator congestion.Estimator, now time.Time) {
	s.Stop(now)
	s.history, s.estimator, s.at = history, estimator, now
	if estimator == nil {
		return
	}
	// The first probes follow the first packets.
	stats := estimator.Stats()
	s.stats, s.next, s.due = &stats, now.Sub(s.started), now.Sub(s.started)
	s.updatePath(now)
}

// Stop drops the history and the estimate. From then on the plan alone paces packets. Stop must be called before a
// Sender is abandoned that shares a Spacing.
func (s *Sender[P, R]) Stop(now time.Time) {
	s.EndProbe()
	s.spacing.release(s.path)
	if s.path != (pacing.Path{}) {
		s.SetPath(pacing.Path{}, now.Sub(s.started))
	}
	s.estimation = estimation{next: Never, due: Never, stats: &unknown}
}

// Sent records a packet that leaves with the codepoint of Stats, with its size on the wire in bytes, and returns its
// place in the order of sending. The estimator sees no packet before the first one that is not audio: its first probes
// follow the first packet, and are padded with media. Start must have been called.
func (s *Sender[P, R]) Sent(ssrc uint32, sequence uint16, size int, kind feedback.PacketKind, now time.Time) int64 {
	number := s.history.sent(ssrc, sequence, size, kind, s.stats.ECN, now)
	if s.path.Window > 0 {
		s.SetInFlight(s.inFlight())
	}
	if s.estimator == nil {
		return number
	}
	if !s.video {
		if kind == feedback.Audio {
			return number
		}
		s.video, s.began = true, now
	}
	if now.After(s.at) || s.pending > maxPending {
		departed := s.pending > 0
		s.advance(now)
		if departed && !s.scheduled {
			// A wait for a report may have begun.
			s.scheduled = true
			s.next = min(s.next, s.nextStep(now))
			s.due = min(s.due, s.next)
		}
	}
	s.pending += size
	if s.idle > 0 {
		s.latest = now
	}
	if s.Probing() {
		s.clusters.Sent(number)
	}
	return number
}

// advance passes the pending bytes to the estimator and returns the time for its next call. The time of the estimator
// never decreases, although a report may have arrived before packets that were sent while it was read.
func (s *Sender[P, R]) advance(now time.Time) time.Time {
	if s.pending > 0 {
		s.estimator.Sent(s.at, s.pending)
		s.pending = 0
	}
	if now.After(s.at) {
		s.at = now
	}
	return s.at
}

// Spend accounts for a packet that has left, as the pacer does. If the packet completes a probe, a step is due, since
// the next probe may be waiting.
func (s *Sender[P, R]) Spend(bytes int) (probed bool) {
	probed = s.Pacer.Spend(bytes)
	if probed && s.estimator != nil {
		s.next, s.due = 0, 0
	}
	return probed
}

// Report processes a report that arrived at the given time, and appends its new results to results, which must be
// empty. Without a history Report has no effect.
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

// Learn processes the results of one report that arrived at the given time.
func (s *Sender[P, R]) Learn(results []feedback.PacketResult, arrived, now time.Time) {
	results = s.afterMove(results, now)
	if s.estimator == nil || len(results) == 0 {
		return
	}
	for i := range results {
		results[i].Probe = s.clusters.Of(results[i].Sequence)
	}
	s.estimator.Report(s.advance(arrived), results)
	s.reported, s.unreported = true, 0
	if s.inFlight() == 0 {
		s.settle(s.at)
	}
	s.trips.Add(now.Sub(s.started), congestion.LongestTrip(arrived, results), feedback.QueueMemory)
}

// Suspend sets whether reports are not passed on at present. No window then bounds the bytes in flight, and afterwards
// no report is expected about the packets of this time. The next Consult applies the change. While suspended, Suspend
// is due before every Consult.
func (s *Sender[P, R]) Suspend(suspended bool, now time.Time) {
	if s.estimator == nil || !suspended && !s.suspended {
		return
	}
	s.suspended, s.unreported = suspended, int32(s.history.inFlight())
	s.settle(s.advance(now))
}

// reportTime bounds the time in which packets are reported that left before a Move, in ms.
const reportTime = 2000

// millis converts a time to that of moved.
func (s *Sender[P, R]) millis(now time.Time) uint32 { return uint32(now.Sub(s.started).Milliseconds()) }

// Move records that packets leave on another path from now on, which is estimated to carry a rate. Reports about
// packets that left before do not reach the estimator. A step is due.
func (s *Sender[P, R]) Move(rate congestion.Bitrate, now time.Time) {
	if e, ok := s.estimator.(interface {
		Move(now time.Time, rate congestion.Bitrate)
	}); ok {
		e.Move(s.advance(now), rate)
		s.moved, s.next, s.due = s.millis(now), 0, 0
	}
}

// afterMove returns the results of the packets that left after the last Move.
func (s *Sender[P, R]) afterMove(results []feedback.PacketResult, now time.Time) []feedback.PacketResult {
	if s.moved == 0 || s.millis(now)-s.moved > reportTime {
		return results
	}
	kept := make([]feedback.PacketResult, 0, len(results))
	for i := range results {
		if int32(s.millis(results[i].Sent)-s.moved) >= 0 {
			kept = append(kept, results[i])
		}
	}
	return kept
}

// settle tells an estimator that waits for reports that none is expected about the packets sent until now.
func (s *Sender[P, R]) settle(now time.Time) {
	if e, ok := s.estimator.(interface{ Settle(now time.Time) }); ok {
		e.Settle(now)
	}
}

// inFlight returns the number of bytes in flight about which a report is expected.
func (s *Sender[P, R]) inFlight() int { return max(s.history.inFlight()-int(s.unreported), 0) }

// Want sets the rate that would be sent without a bandwidth limit.
func (s *Sender[P, R]) Want(rate congestion.Bitrate, now time.Time) {
	if s.estimator != nil {
		s.estimator.Want(s.advance(now), rate)
	}
}

// SetLimits changes the limits of the estimate.
func (s *Sender[P, R]) SetLimits(limits congestion.Limits, now time.Time) {
	if s.estimator != nil {
		s.estimator.SetLimits(s.advance(now), limits)
	}
}

// Change describes the consequences of a step for the caller.
type Change struct {
	// Probe is set if a probe has begun.
	Probe bool
	// Next is set if the pacer's Next may have changed.
	Next bool
}

// StepDue is when Step is due, Never if there is nothing to step.
func (s *Sender[P, R]) StepDue() time.Duration { return s.due }

// Step steps the estimator if a step is due, and consults it.
func (s *Sender[P, R]) Step(now time.Time) Change {
	if s.estimator != nil && s.next <= now.Sub(s.started) {
		s.estimator.Step(s.advance(now))
	}
	return s.Consult(now)
}

// Consult passes the estimator's path and next probe to the pacer. It is due after reports, and after changes of the
// wanted rate or of the limits.
func (s *Sender[P, R]) Consult(now time.Time) (change Change) {
	if s.estimator == nil {
		return change
	}
	advanced, at := s.advance(now), now.Sub(s.started)
	if !s.Probing() && s.mayProbe(now) {
		if c, ok := s.estimator.Probe(advanced); ok {
			s.clusters.Begin(c.ID)
			s.Probe(int64(c.Rate), c.MinBytes, c.MinPackets, at+maxProbeFactor*c.Duration+probeGrace, at)
			change = Change{Probe: true, Next: true}
		}
	}
	*s.stats = s.estimator.Stats()
	if s.Probing() && s.stats.ProbeMarked {
		s.EndProbe()
		change.Next = true
	}
	if s.updatePath(now) {
		change.Next = true
	}
	if s.path.Window > 0 && s.SetInFlight(s.inFlight()) {
		change.Next = true
	}
	s.scheduled, s.next = false, s.nextStep(now)
	s.due = s.next
	if s.look > 0 {
		s.due = min(s.due, at+s.look)
	}
	if s.video && s.inGrace(now) {
		s.due = min(s.due, s.began.Add(s.grace).Sub(s.started))
	}
	return change
}

// nextStep returns the time of the estimator's next step, at least stepInterval after the given time.
func (s *Sender[P, R]) nextStep(now time.Time) time.Duration {
	next := s.estimator.Next()
	if next.IsZero() {
		return Never
	}
	return max(next.Sub(s.started), now.Sub(s.started)+stepInterval)
}

// mayProbe reports whether a packet left recently enough to pad a probe.
func (s *Sender[P, R]) mayProbe(now time.Time) bool {
	return s.idle == 0 || !s.latest.IsZero() && now.Sub(s.latest) <= s.idle
}

// updatePath passes the path to the pacer if the path has changed, and reports whether it has. While nothing limits the
// sender, the path only determines the ticks of probes.
func (s *Sender[P, R]) updatePath(now time.Time) bool {
	if s.Off() {
		return false
	}
	path := pacing.Path{Smooth: s.stats.Smooth}
	if s.reported || s.inGrace(now) {
		path = s.stats.Path()
	}
	if s.suspended {
		path.Window = 0
	}
	s.spacing.release(s.path)
	path.Spaced = s.spacing.take(path)
	if path == s.path {
		return false
	}
	s.path = path
	s.SetPath(path, now.Sub(s.started))
	return true
}

// inGrace reports whether the start rate limits the sender, since the first report may still arrive.
func (s *Sender[P, R]) inGrace(now time.Time) bool {
	return !s.reported && s.grace > 0 && (!s.video || now.Sub(s.began) < s.grace)
}

// Limit returns the rate that limits the sender as of the last step or Consult, or 0 if no rate does. With the plan of
// pacing.Off no rate does.
func (s *Sender[P, R]) Limit() congestion.Bitrate { return congestion.Bitrate(s.path.Estimate) }

// Reported reports whether the receiver has reported on a packet.
func (s *Sender[P, R]) Reported() bool { return s.reported }

// Stats returns the estimator's statistics as of the last step or Consult. The caller must not change them.
func (s *Sender[P, R]) Stats() *congestion.Stats { return s.stats }

// LongestTrip returns the longest of the latest round trips, queues included, or 0 if none is known.
func (s *Sender[P, R]) LongestTrip() time.Duration { return s.trips.Value() }

// Pad sends the padding that the current probe needs in this tick. repeat sends a recent packet again, and reports
// false if there is none.
func (s *Sender[P, R]) Pad(repeat func() bool) {
	for s.Pads() {
		if !repeat() {
			s.Dry()
			return
		}
	}
}
