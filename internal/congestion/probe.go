package congestion

import (
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
)

const (
	// Those up to resultTimeout are libwebrtc's.
	//
	// The first two probes, as multiples of the start rate.
	firstProbe  = 3
	secondProbe = 6
	// A probe that brought the estimate to this share of its rate is followed by one at furtherScale times the estimate.
	furtherShare = 0.7
	furtherScale = 2
	// limitedScale is for a sender that uses little of its estimate.
	limitedScale = 2
	// A fall to this share of what the estimate was within dropTimeout is a large one. Once the path is at ease again within dropMemory, this share of the former
	// rate is probed: links that are down for seconds come back as they were.
	largeDrop   = 0.66
	dropTimeout = 5 * time.Second
	dropMemory  = time.Minute
	dropShare   = 0.85
	// resultTimeout is how long the result of a probe is waited for, where no round trip is known; where one is, resultTrips of it and the interval of reports, twice
	// that of any peer's.
	resultTimeout  = time.Second
	resultTrips    = 2
	reportInterval = 200 * time.Millisecond
	// usedScale is for a sender that uses its estimate. A long probe at 1.5 times the capacity leaves a queue of half its length, 20 ms.
	usedScale = 1.5
	// A long probe is followed by another only if it has not found the capacity: of one that has, at most 0.95 times 0.9 of its rate is left.
	furtherShareLong = 0.88
	// dropInterval is the least time between two probes after drops; it doubles up to dropIntervalMax as long as they do not bring back what was there before. A link
	// that is itself again is used within 5 s then, for a share of 0.007 more on one that is not: 40 ms at half as much again.
	dropInterval    = time.Second
	dropIntervalMax = 3 * time.Second
	// success is the growth of the estimate from which a probe was worth its packets.
	success = 1.2
	// Bursts that arrive so much faster than when the path was overused make a probe due, a second after the one before at the earliest.
	fasterBursts = 1.3
	// Where nothing waits although frames leave in bursts, probes come so many times as often.
	easyPart = 3
	// leastBursts is five packets in a hundredth of a second: of fewer one more makes too much of a difference.
	leastBursts    = 5e6
	fasterInterval = time.Second
	// near: where so little is missing, it is left to the growth of the rate.
	near = 0.95
	// wantScale is the largest rate of a probe as a multiple of what is wanted. What takes twice as much for 15 ms takes what is wanted, and a path that takes
	// everything would be probed with megabytes up to the largest estimate there is.
	wantScale = 2
	// headroomIntervalMax bounds the time between probes for more than is wanted.
	headroomIntervalMax = 5 * time.Minute
	// A start that found less than is wanted is tried again for startTime, unless the path is overused: a host that is busy with a new connection takes milliseconds
	// longer for what it receives, and so the first probes often find a tenth of what the path carries.
	startTime     = time.Second
	startInterval = 250 * time.Millisecond
)

// situation is what a prober decides by.
type situation struct {
	estimate float64       // bit/s
	bursts   float64       // the rate at which bursts arrive, bit/s
	idle     bool          // no packet has waited for a while
	full     bool          // bursts wait on the path, and arrive at hardly more than the estimate
	limited  bool          // the sender uses much less than the estimate
	quiet    bool          // the path is neither overused nor does it hold a queue
	eased    bool          // the path was overused, and the queue has emptied just now
	rtt      time.Duration // 0 while unknown
}

// prober plans probe clusters.
type prober struct {
	cfg      ProbeConfig
	limits   Limits
	want     float64 // bit/s
	lastID   int
	pending  [2]ProbeCluster
	count    int // of pending
	expires  time.Duration
	begun    bool
	waiting  bool          // for the result of a probe
	asked    time.Duration // when the wait began
	rtt      time.Duration // the last one, 0 while unknown
	further  float64       // estimate from which a further probe follows, 0 for none
	duration time.Duration // of that
	estimate float64       // the last one

	bursts   float64       // the rate at which bursts arrived when the path was overused last, or a probe found nothing; 0 if it never was
	latest   float64       // that of now
	found    float64       // that of when the result of the last probe came
	probed   time.Duration // when the last probe was made
	interval time.Duration // between probes for more than the estimate
	due      time.Duration // when the next one is
	from     float64       // the estimate when the last probe was made
	judged   bool          // its success has been judged

	top      feedback.WindowMax[float64] // of the estimate
	dropped  time.Duration               // when the estimate fell by much
	before   float64                     // from where; 0 if it did not, or has been there again
	eased    bool                        // the path has been at ease since
	retry    time.Duration               // between the last probe after the drop and the next, 0 before the first
	dropNext time.Duration               // no probe after a drop before

	starting bool          // the first probes may yet be repeated
	started  time.Duration // when they were made
}

func newProber(cfg ProbeConfig, limits Limits) prober {
	return prober{cfg: cfg, limits: limits, want: float64(limits.Max), interval: cfg.IntervalMin, judged: true}
}

// estimated takes a new estimate.
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

// step plans what is due.
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
	case (now >= p.due || p.faster(now) || s.idle && p.easy(now)) && (p.wantsMore(s.estimate) || s.limited && p.wantsHeadroom(s.estimate)) && !s.full:
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

// finish ends the wait for a result. A probe that found nothing makes the next one later.
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

// overused notes the rate at which bursts arrive while the path is overused: then it is what the path carries.
func (p *prober) overused(bursts float64) {
	p.bursts = bursts
	if p.starting {
		p.starting, p.due = false, p.started+p.interval
	}
}

// endStart leaves what is missing to the usual probes. Where all that is wanted is there, what lets frames leave sooner is probed for at once.
func (p *prober) endStart() {
	p.starting = false
	if p.wantsMore(p.estimate) {
		p.due = p.started + p.interval
	}
}

// faster tells whether bursts arrive so much faster than the path could carry them before that it has to be another one, or less used by others.
func (p *prober) faster(now time.Duration) bool {
	if p.bursts == 0 || p.latest < leastBursts || now-p.probed < fasterInterval {
		return false
	}
	return p.latest > fasterBursts*p.bursts
}

// afterDrop probes for what was there before. Where the sender was limited, what was acknowledged then is no measure of the path, and the former rate is
// probed at once; else the path has shown what it takes, and a step up is tried.
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

// resumed probes for the rate before a silence, or before reductions that were in vain. The path may be another one, and what had piled up in it meanwhile may
// swallow the probe: it is repeated as after a drop.
func (p *prober) resumed(now time.Duration, before float64) {
	if !p.cfg.Enabled {
		return
	}
	p.waiting, p.count, p.judged = false, 0, true
	p.before, p.dropped, p.eased, p.retry = max(p.before, before), now, true, dropInterval
	p.dropNext = now + p.retry
	p.plan(now, p.cfg.Duration, dropShare*before)
}

// easy tells whether it is time to try more on a path that was overused and on which nothing waits any more.
func (p *prober) easy(now time.Duration) bool {
	return p.bursts > 0 && now-p.probed >= p.interval/easyPart
}

// plan makes clusters that exceed the estimate, none above the largest one or far above what is wanted. One that reaches that is not followed by others.
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
		p.pending[p.count] = ProbeCluster{ID: p.lastID, Rate: Bitrate(capped), Duration: duration, MinBytes: bytes, MinPackets: p.cfg.MinPackets}
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

// until is how long a result is waited for.
func (p *prober) until() time.Duration {
	if p.starting {
		return p.asked + p.result()
	}
	return p.asked + resultTimeout
}

// result is when the result of a probe has come for certain.
func (p *prober) result() time.Duration {
	if p.rtt == 0 {
		return resultTimeout
	}
	return min(resultTrips*p.rtt+reportInterval, resultTimeout)
}

// next hands out a cluster.
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

// wake is when step has something to do that time alone brings, if there is anything.
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
