package congestion

import (
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
)

const (
	// The constants up to resultTimeout are those of libwebrtc.
	//
	// The first two probes, as multiples of the start rate.
	firstProbe  = 3
	secondProbe = 6
	// If a probe raised the estimate to furtherShare of the probe rate, another probe at furtherScale times the
	// estimate follows.
	furtherShare = 0.7
	furtherScale = 2
	// limitedScale, as a multiple of the estimate, is the rate of a probe for a sender that uses little of its
	// estimate.
	limitedScale = 2
	// An estimate below largeDrop of its maximum within dropTimeout is a large drop. When the path is quiet again
	// within dropMemory, dropShare of the former rate is probed: links that fail for seconds recover unchanged.
	largeDrop   = 0.66
	dropTimeout = 5 * time.Second
	dropMemory  = time.Minute
	dropShare   = 0.85
	// The result of a probe is awaited for resultTimeout if no round trip is known. Otherwise for resultTrips round
	// trips and reportInterval, which is twice the report interval of any peer.
	resultTimeout  = time.Second
	resultTrips    = 2
	reportInterval = 200 * time.Millisecond
	// usedScale, as a multiple of the estimate, is the rate of a probe for a sender that uses its estimate. A long
	// probe at 1.5 times the capacity leaves a queue of half its length, 20 ms.
	usedScale = 1.5
	// A long probe is followed by another only if it has not found the capacity: the estimate after a probe that found
	// the capacity is at most 0.95 times 0.9 of the probe rate.
	furtherShareLong = 0.88
	// dropInterval is the minimum time between two probes after a drop; it doubles up to dropIntervalMax until the
	// former rate is back. A recovered link is then used within 5 s. On a link that has not recovered, the probes cost
	// a share of 0.007: 40 ms at 1.5 times the rate.
	dropInterval    = time.Second
	dropIntervalMax = 3 * time.Second
	// A probe is a success if the estimate grew by this factor.
	success = 1.2
	// Bursts that arrive faster by this factor than at the last overuse make a probe due, at the earliest
	// fasterInterval after the last probe.
	fasterBursts = 1.3
	// If no packet is queued although frames leave in bursts, probes are sent easyPart times as often.
	easyPart = 3
	// leastBursts is five packets in 10 ms. At lower rates a single packet changes the burst rate too much.
	leastBursts    = 5e6
	fasterInterval = time.Second
	// near: above this share of the wanted rate, the rest is left to the growth of the rate.
	near = 0.95
	// wantScale bounds the rate of a probe as a multiple of the wanted rate. A path that takes twice the wanted rate
	// for 15 ms takes the wanted rate. Without the bound, an unlimited path would be probed with megabytes up to
	// Limits.Max.
	wantScale = 2
	// headroomIntervalMax bounds the interval between probes for more than the wanted rate.
	headroomIntervalMax = 5 * time.Minute
	// A start that found less than the wanted rate is repeated every startInterval for startTime, unless the path is
	// overused. A host that is busy with a new connection processes received packets milliseconds late, so the first
	// probes often find a tenth of the capacity.
	startTime     = time.Second
	startInterval = 250 * time.Millisecond
)

// situation is the input of a prober.
type situation struct {
	estimate float64       // bit/s
	bursts   float64       // burst rate, bit/s
	idle     bool          // no packet was queued for idleTime
	full     bool          // bursts are queued on the path, and the burst rate hardly exceeds the estimate
	limited  bool          // the sender uses much less than the estimate
	quiet    bool          // the path is not overused and has no queue
	eased    bool          // the path was overused, and the queue has just emptied
	rtt      time.Duration // 0 while unknown
}

// prober plans probe clusters.
type prober struct {
	cfg      ProbeConfig
	limits   Limits
	want     float64 // wanted rate, bit/s
	lastID   int
	pending  [2]ProbeCluster
	count    int // length of pending
	expires  time.Duration
	begun    bool
	waiting  bool          // for the result of a probe
	asked    time.Duration // start of the wait
	rtt      time.Duration // last round trip, 0 while unknown
	further  float64       // estimate above which a further probe follows, 0 for none
	duration time.Duration // duration of the further probe
	estimate float64       // last estimate

	// burst rate at the last overuse or at the last probe that found no more, 0 while there was neither
	bursts   float64
	latest   float64       // current burst rate
	found    float64       // burst rate when the result of the last probe arrived
	probed   time.Duration // time of the last probe
	interval time.Duration // between probes above the estimate
	due      time.Duration // time of the next probe
	from     float64       // estimate at the time of the last probe
	judged   bool          // the success of the last probe is decided

	top      feedback.WindowMax[float64] // maximum of the estimate
	dropped  time.Duration               // time of the last large drop
	before   float64                     // estimate before the drop; 0 without a drop, or after recovery
	eased    bool                        // the path has been quiet since the drop
	retry    time.Duration               // interval between probes after the drop, 0 before the first
	dropNext time.Duration               // earliest time of the next probe after a drop

	starting bool          // the first probes may be repeated
	started  time.Duration // time of the first probes
}

func newProber(cfg ProbeConfig, limits Limits) prober {
	return prober{cfg: cfg, limits: limits, want: float64(limits.Max), interval: cfg.IntervalMin, judged: true}
}

// estimated processes a new estimate.
func (p *prober) estimated(now time.Duration, estimate float64) {
	p.top.Add(now, estimate, dropTimeout/2)
	switch top := p.top.Value(); {
	case estimate < largeDrop*top && estimate < p.estimate:
		p.dropped, p.before, p.retry = now, max(p.before, top), 0
		p.eased = false
		p.dropNext = min(p.dropNext, now+dropInterval)
	case estimate >= largeDrop*p.before:
		p.before = 0
	}
	p.estimate = estimate
	if longest := p.maxInterval(); p.interval > longest {
		p.interval, p.due = longest, min(p.due, now+longest)
	}
	if !p.waiting {
		return
	}
	if estimate >= success*p.from {
		p.judged, p.interval = true, p.cfg.IntervalMin
		p.due = min(p.due, now+p.interval)
	}
	if p.further > 0 && estimate > p.further {
		p.plan(now, p.duration, furtherScale*estimate)
	}
}

// step plans the probes that are due.
func (p *prober) step(now time.Duration, s situation) {
	if !p.cfg.Enabled {
		return
	}
	if p.count > 0 && now >= p.expires {
		p.count = 0
	}
	p.latest = s.bursts
	if now < p.asked+p.result() {
		p.found = s.bursts
	}
	p.eased = p.eased || s.eased
	if now-p.dropped >= dropMemory {
		p.before = 0
	}
	p.rtt = s.rtt
	if p.waiting && now >= p.until() {
		p.finish(now)
	}
	if p.starting && !p.waiting && now-p.started >= startTime {
		p.endStart()
	}
	switch {
	case !p.begun:
		p.begun, p.estimate = true, s.estimate
		p.starting, p.started = true, now
		p.due = now + startInterval
		p.plan(now, p.cfg.Duration, firstProbe*s.estimate, secondProbe*s.estimate)
	case p.waiting || p.count > 0 || !s.quiet:
	case p.eased && p.before > 0 && now >= p.dropNext && !s.full:
		p.afterDrop(now, s)
	case (now >= p.due || p.faster(now) || s.idle && p.easy(now)) &&
		(p.wantsMore(s.estimate) || s.limited && p.wantsHeadroom(s.estimate)) && !s.full:
		p.judged = false
		if s.limited || p.starting {
			p.plan(now, p.cfg.Duration, limitedScale*s.estimate)
		} else {
			p.plan(now, p.cfg.LongDuration, usedScale*s.estimate)
		}
		p.due = now + p.interval
		if p.starting {
			p.due = now + startInterval
		}
	}
}

// finish ends the wait for a result. A probe that found no more capacity doubles the interval.
func (p *prober) finish(now time.Duration) {
	p.waiting, p.further = false, 0
	switch {
	case p.judged:
	case p.starting:
		p.endStart()
	default:
		p.bursts = max(p.bursts, p.found)
		p.interval = min(2*p.interval, p.maxInterval())
		p.due = now + p.interval
	}
	p.judged = true
}

// overused records the burst rate while the path is overused, which is then the capacity.
func (p *prober) overused(bursts float64) {
	p.bursts = bursts
	if p.starting {
		p.starting, p.due = false, p.started+p.interval
	}
}

// endStart ends the start phase. If more is wanted, the next probe follows at the usual interval. Otherwise probes for
// headroom may start at once.
func (p *prober) endStart() {
	p.starting = false
	if p.wantsMore(p.estimate) {
		p.due = p.started + p.interval
	}
}

// faster reports whether bursts arrive so much faster than the former capacity that the path must have changed or has
// less cross traffic.
func (p *prober) faster(now time.Duration) bool {
	if p.bursts == 0 || p.latest < leastBursts || now-p.probed < fasterInterval {
		return false
	}
	return p.latest > fasterBursts*p.bursts
}

// afterDrop probes for the rate before a drop. If the sender was limited, the acknowledged rate did not measure the
// path, and the former rate is probed at once. Otherwise the path has shown its capacity, and a smaller step is probed.
func (p *prober) afterDrop(now time.Duration, s situation) {
	rate := dropShare * p.before
	duration := p.cfg.Duration
	if !s.limited {
		rate, duration = min(rate, usedScale*s.estimate), p.cfg.LongDuration
	}
	p.retry = min(max(2*p.retry, dropInterval), dropIntervalMax)
	p.dropNext = now + p.retry
	p.plan(now, duration, rate)
}

// resumed probes for the rate before a silence, or before reductions that had no effect. The path may have changed, and
// its accumulated queue may absorb the probe, so the probe is repeated as after a drop.
func (p *prober) resumed(now time.Duration, before float64) {
	if !p.cfg.Enabled {
		return
	}
	p.waiting, p.count, p.judged = false, 0, true
	p.before, p.dropped, p.eased, p.retry = max(p.before, before), now, true, dropInterval
	p.dropNext = now + p.retry
	p.plan(now, p.cfg.Duration, dropShare*before)
}

// easy reports whether a probe is due on a path that was overused and has no queue any more.
func (p *prober) easy(now time.Duration) bool {
	return p.bursts > 0 && now-p.probed >= p.interval/easyPart
}

// plan creates the clusters whose rate exceeds the estimate. No rate exceeds Limits.Max or maxProbeRate. A cluster that
// reaches this bound is not followed by others.
func (p *prober) plan(now, duration time.Duration, rates ...float64) {
	p.count, p.further, p.duration = 0, 0, duration
	most := min(float64(p.limits.Max), p.maxProbeRate())
	further := true
	for _, rate := range rates {
		capped := min(rate, most)
		if capped <= p.estimate/near {
			break
		}
		p.lastID++
		bytes := int(capped * duration.Seconds() / 8)
		p.pending[p.count] = ProbeCluster{ID: p.lastID, Rate: Bitrate(capped), Duration: duration, MinBytes: bytes,
			MinPackets: p.cfg.MinPackets}
		p.count++
		if capped < rate {
			further = false
			break
		}
	}
	if p.count == 0 {
		return
	}
	if further {
		share := furtherShare
		if duration > p.cfg.Duration {
			share = furtherShareLong
		}
		p.further = share * float64(p.pending[p.count-1].Rate)
	}
	p.from, p.probed = p.estimate, now
	p.waiting, p.asked, p.expires = true, now, now+resultTimeout
}

// until returns the end of the wait for a result.
func (p *prober) until() time.Duration {
	if p.starting {
		return p.asked + p.result()
	}
	return p.asked + resultTimeout
}

// result returns the time after which the result of a probe must have arrived.
func (p *prober) result() time.Duration {
	if p.rtt == 0 {
		return resultTimeout
	}
	return min(resultTrips*p.rtt+reportInterval, resultTimeout)
}

// next returns the next cluster.
func (p *prober) next(now time.Duration) (ProbeCluster, bool) {
	if p.count == 0 || now >= p.expires {
		return ProbeCluster{}, false
	}
	c := p.pending[0]
	p.pending[0] = p.pending[1]
	p.count--
	p.asked = now
	return c, true
}

// wake returns the time of the next step, and whether there is one.
func (p *prober) wake() (time.Duration, bool) {
	switch {
	case !p.cfg.Enabled:
		return 0, false
	case !p.begun:
		return 0, true
	case p.waiting:
		return p.until(), true
	}
	return p.due, p.wantsMore(p.estimate) || p.wantsHeadroom(p.estimate)
}
