package congestion

import (
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
)

const (
	// queueTime and what is tolerated of a queue, 100 ms in all where acknowledgements come evenly, is how much may wait for the path beside what its round trip holds: a frame that is
	// handed over waits for no longer than that. It is more than an acknowledgement is held up as a rule, so that those do not stop the sender, and with a frame's own time less
	// than the 150 ms that a conversation puts up with.
	queueTime = 70 * time.Millisecond
	// assumedTrip is the round trip before one is known.
	assumedTrip = 100 * time.Millisecond
	// reliableProbe is the length of a probe: acknowledgements that are held up for 20 ms change what it finds by a fifth.
	reliableProbe = 100 * time.Millisecond
)

// reliable is an Estimator for transports that repeat what is lost by themselves and acknowledge what has come, as SCTP does under data channels. Reports have to be made of
// acknowledgements, at the sender and by its clock. What they call lost was left out by the sender, and says nothing about the path.
//
// Acknowledgements are coarse: they come for every second packet or 200 ms late, many at a time, and whenever two busy hosts come to them. So nothing is made of single packets, as GCC
// does. What the path carries is the rate of delivery over half a second, after BBR (draft-ietf-ccwg-bbr section 4.5), and told from what the sender has left unused by what was sent. The path counts
// as overused where the quickest acknowledgement of 200 ms and more was late; then the rate falls to below what was delivered. It grows fast until then and slowly near that rate, and by probes
// where the sender has not enough to send. What may be under way is bounded by Stats.Window, since the sender's own transport would take any amount.
type reliable struct {
	cfg    Config
	limits Limits
	epoch  time.Time // times below count from here
	stats  Stats

	delivery delivery
	// ahead is how far the clock of arrivals is behind ours, once reported.
	ahead    time.Duration
	reported bool
	delay    ackDelay
	rtt      time.Duration // smoothed, 0 while unknown
	// waiting says that something was sent since the last acknowledgement, at since for the first time. What was sent before resumed had met a peer that stood still.
	waiting        bool
	since, resumed time.Duration

	rate     float64       // bit/s
	capacity float64       // what the path carried when it was overused last, 0 while unknown
	changed  time.Duration // when the rate was looked at last
	settled  time.Duration // when a reduction must have shown
	// strained says that the rate was reduced, and the queue has not emptied since; restore is what it was before. Of the last reduction, before is the queue then, and kept the share of the rate
	// that it left; vain counts those in a row that changed nothing.
	strained bool
	restore  float64
	before   time.Duration
	kept     float64
	vain     int

	limited applicationLimited
	trains  trainRates
	prober  prober
	// probing is the rate of the last probe, whose packets are under way until probed.
	probing float64
	probed  time.Duration
	started bool
	stepped time.Duration // when probes were last thought of
}

var _ Estimator = (*reliable)(nil)

// newReliable makes an estimator for one receiver. The configuration has to be valid; of it count the limits, Rate.Backoff, Rate.Headroom and Rate.UnusedShare, and what says when to probe.
func newReliable(cfg Config, now time.Time) *reliable {
	// What leaves over a data channel is not paced by the estimate: more than is wanted is of no use.
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

// Step implements Estimator. A peer that acknowledges nothing is sent nothing beyond the window, so that its silence needs no other answer.
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
	s.Window = int((max(r.rate, r.probing)*r.trip().Seconds() + r.rate*(queueTime+r.delay.tolerance()).Seconds()) / 8)
	return s
}

// trip is the round trip of the empty path.
func (r *reliable) trip() time.Duration {
	if !r.reported {
		return assumedTrip
	}
	return max(r.delay.base.value(), 0)
}
