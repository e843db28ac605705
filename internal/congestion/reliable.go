package congestion

import (
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
)

const (
	// queueTime plus the tolerance of ackDelay, 100 ms in all if acknowledgements are regular, bounds the data that may
	// wait for the path beyond one round trip. A frame written to the transport waits for no longer than that. The
	// bound exceeds the usual delay of acknowledgements, so that such a delay does not stop the sender; with a frame's
	// own send time it stays below the 150 ms that a conversation tolerates.
	queueTime = 70 * time.Millisecond
	// assumedTrip is the round trip before the first measurement.
	assumedTrip = 100 * time.Millisecond
	// reliableProbe is the length of a probe: acknowledgements delayed by 20 ms change the result by a fifth.
	reliableProbe = 100 * time.Millisecond
)

// reliable is an Estimator for transports that retransmit lost data and acknowledge received data, as SCTP does under
// data channels. Reports are derived from acknowledgements, at the sender and with the sender's clock. Packets reported
// as lost were abandoned by the sender and say nothing about the path.
//
// Acknowledgements are coarse: they arrive for every second packet or 200 ms late, several at a time, and whenever two
// busy hosts process them. Therefore single packets are not evaluated as in GCC. The throughput of the path is the
// delivery rate over 500 ms, after BBR (draft-ietf-ccwg-bbr section 4.5); the send rate shows whether the sender used
// the path. The path counts as overused if the fastest acknowledgement of at least 200 ms was late. The rate then falls
// below the delivery rate. It grows fast before the first overuse, slowly near that rate, and by probes if the sender
// does not have enough data. Stats.Backlog bounds the bytes in flight, because the sender's own transport would accept
// any amount.
type reliable struct {
	cfg    Config
	limits Limits
	epoch  time.Time // origin of the times below
	stats  Stats

	delivery delivery
	// ahead is the offset of the arrival clock behind the local clock, valid if reported.
	ahead    time.Duration
	reported bool
	delay    ackDelay
	rtt      time.Duration // smoothed, 0 while unknown
	// waiting is set from the first packet after an acknowledgement, sent at since, to the next acknowledgement.
	// Packets sent before resumed met a stalled peer.
	waiting        bool
	since, resumed time.Duration

	rate     float64       // bit/s
	capacity float64       // throughput at the last overuse, 0 while unknown
	changed  time.Duration // time of the last change of the rate
	settled  time.Duration // time at which the last reduction must be visible
	// strained is set when the rate is reduced and cleared when the queue is empty. restore is the rate before. For the
	// last reduction, before is the queue at that time and kept the share of the rate that remained. vain counts
	// consecutive reductions without effect.
	strained bool
	restore  float64
	before   time.Duration
	kept     float64
	vain     int

	limited applicationLimited
	trains  trainRates
	prober  prober
	// probing is the rate of the last probe, whose packets are in flight until probed.
	probing float64
	probed  time.Duration
	started bool
	stepped time.Duration // time of the last call of the prober
}

var _ Estimator = (*reliable)(nil)

// newReliable returns an estimator for one receiver. The configuration must be valid. Only the limits, Rate.Backoff,
// Rate.Headroom, Rate.UnusedShare and the probe intervals are used.
func newReliable(cfg Config, now time.Time) *reliable {
	// Data channels are not paced by the estimate, so an estimate above the wanted rate is of no use.
	cfg.Probe.Duration, cfg.Probe.LongDuration, cfg.Probe.Ample = reliableProbe, reliableProbe, 1
	limits := cfg.Limits()
	return &reliable{
		cfg:     cfg,
		limits:  limits,
		epoch:   now,
		delay:   newAckDelay(),
		rate:    float64(limits.Start),
		limited: applicationLimited{share: cfg.Rate.UnusedShare, target: cfg.Rate.UnusedShare * float64(limits.Start)},
		prober:  newProber(cfg.Probe, limits),
	}
}

// Sent implements Estimator.
func (r *reliable) Sent(now time.Time, size int) {
	at := now.Sub(r.epoch)
	r.started = true
	size = min(max(size, 0), maxSize)
	r.limited.sent(at, size)
	r.delivery.sent.add(at, size)
	if !r.waiting {
		r.waiting, r.since = true, at
	}
}

// Report implements Estimator.
func (r *reliable) Report(now time.Time, results []feedback.PacketResult) {
	at := now.Sub(r.epoch)
	r.limited.step(at)
	probe := r.take(at, results)
	r.react(at, probe)
	r.publish(at)
	r.plan(at)
}

// Step implements Estimator. The window bounds the data sent to a peer that acknowledges nothing, so a silence needs no
// other reaction.
func (r *reliable) Step(now time.Time) {
	at := now.Sub(r.epoch)
	r.limited.step(at)
	r.plan(at)
}

// Next implements Estimator.
func (r *reliable) Next() time.Time {
	next, ok := r.prober.wake()
	if !r.started || !ok {
		return time.Time{}
	}
	return r.epoch.Add(max(next, r.stepped+stepInterval))
}

// Estimate implements Estimator.
func (r *reliable) Estimate() Bitrate { return Bitrate(r.rate) }

// Probe implements Estimator.
func (r *reliable) Probe(now time.Time) (ProbeCluster, bool) {
	at := now.Sub(r.epoch)
	c, ok := r.prober.next(at)
	if ok {
		r.stats.Probes++
		r.trains.expect(c)
		r.probing, r.probed = float64(c.Rate), at+2*c.Duration+r.trip()
	}
	if at >= r.probed {
		r.probing = 0
	}
	return c, ok
}

// Want implements Estimator.
func (r *reliable) Want(now time.Time, rate Bitrate) {
	r.prober.wanted(now.Sub(r.epoch), float64(rate))
}

// SetLimits implements Estimator.
func (r *reliable) SetLimits(now time.Time, limits Limits) {
	if !r.reported {
		r.rate = float64(limits.Start)
	}
	r.prober.limit(limits)
	r.limits = limits
	r.set(r.rate)
	r.publish(now.Sub(r.epoch))
}

// Stats implements Estimator.
func (r *reliable) Stats() Stats {
	s := r.stats
	s.Estimate, s.DelayBased, s.Acknowledged = r.Estimate(), r.Estimate(), Bitrate(r.delivery.carried())
	s.QueueDelay, s.RTT = r.delay.queue, r.rtt
	if r.delay.over() {
		s.Usage = Overusing
	}
	s.ApplicationLimited = r.limited.limited
	s.Backlog = int((max(r.rate, r.probing)*r.trip().Seconds() + r.rate*(queueTime+r.delay.tolerance()).Seconds()) / 8)
	return s
}

// trip returns the round trip of the empty path.
func (r *reliable) trip() time.Duration {
	if !r.reported {
		return assumedTrip
	}
	return max(r.delay.base.value(), 0)
}
