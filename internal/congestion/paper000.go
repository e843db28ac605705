package congestion

import (
	"math"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/feedback"
)

const (
	// paperSpread is the pacing interval of paper 000 (section 4.2). A packet is acknowledged with the last packet of
	// its frame, so a round trip includes it. The figures of the paper confirm it: from 12.5 to 90 Mbit/s in 10 s is
	// one segment of 1,500 bytes per 40 ms, and the network has 20 ms.
	paperSpread = 20 * time.Millisecond
	// paperTarget is the target round trip (section 3.2), the shortest time between two steps.
	paperTarget = 25 * time.Millisecond
	// paperBackoff is the share of the rate that remains after a loss (section 3.2).
	paperBackoff = 0.5
	// paperGain is the weight of a step in the mean share of marks: that of Prague.
	paperGain = 1.0 / 16
	// paperFrames is the capacity of the in-flight buffer, which the paper does not specify, as a time at the rate: the
	// frame that begins, and those of a round trip and of a report interval of 25 ms with half of that to spare.
	paperFrames = 100 * time.Millisecond
)

// paper000 is the Estimator of De Fré et al., "Low-Latency Volumetric Video Conferencing in Congested Networks Through
// L4S" (paper 000). The paper gives no formula for the response to marks. Its authors are those of Prague, so the
// response is that of Prague in steps of a round trip, with the growth of one segment. There are no probes, and no
// bounds by delay. It exists for comparison with measurements of the paper.
type paper000 struct {
	limits   Limits
	epoch    time.Time
	stats    Stats
	rate     float64 // bit/s
	alpha    float64
	trip     time.Duration // smoothed round trip of the network, 0 while unknown
	silence  silence
	acked    acknowledged
	reported bool

	// The packets reported in the current step, and its begin.
	began           time.Duration
	received, marks int
	cut             time.Duration // time of the last reduction
	ended           time.Duration // send time of the latest packet known at the last halving
}

var _ Estimator = (*paper000)(nil)

func newPaper000(cfg Config, now time.Time) *paper000 {
	limits := cfg.Limits()
	return &paper000{limits: limits, epoch: now, rate: float64(limits.Start), alpha: 1,
		silence: silence{cfg: cfg.Silence}}
}

// Sent implements Estimator.
func (p *paper000) Sent(now time.Time, _ int) { p.silence.sent(now.Sub(p.epoch), p.trip) }

// Report implements Estimator.
func (p *paper000) Report(now time.Time, results []feedback.PacketResult) {
	if len(results) == 0 {
		return
	}
	at := now.Sub(p.epoch)
	p.silence.reported(at)
	p.reported = true
	lost := false
	for i := range results {
		r := &results[i]
		sent := r.Sent.Sub(p.epoch)
		if !r.Received {
			p.stats.Lost++
			lost = lost || !r.Late && sent >= p.ended
			continue
		}
		p.stats.Received++
		p.received++
		p.acked.add(sent, r.Arrived, min(max(r.Size, 0), maxSize))
		p.stats.countECN(r.ECN)
		if r.ECN == ecn.CE {
			p.marks++
		}
	}
	p.measure(now, results)
	switch {
	case lost:
		p.set(paperBackoff * p.rate)
		p.ended, p.cut = at, at
	case p.marks > 0 && at-p.cut >= p.step():
		p.set(p.rate * (1 - p.alpha/2))
		p.cut = at
	}
	if at-p.began >= p.step() {
		p.grow(at)
	}
}

// measure updates the round trip from the latest packet of a report.
func (p *paper000) measure(now time.Time, results []feedback.PacketResult) {
	var latest *feedback.PacketResult
	for i := range results {
		if r := &results[i]; r.Received && (latest == nil || r.Arrived > latest.Arrived) {
			latest = r
		}
	}
	if latest == nil {
		return
	}
	trip := max(now.Sub(latest.Sent), 0)
	if p.trip == 0 {
		p.trip = trip
	} else {
		p.trip += (trip - p.trip) / 8
	}
}

// step returns the length of a step: the time until a frame is acknowledged.
func (p *paper000) step() time.Duration { return max(p.trip+paperSpread, paperTarget) }

// grow ends a step. A report ends it, so the step may be longer than a round trip: the growth is in proportion.
func (p *paper000) grow(now time.Duration) {
	share := 0.0
	if p.received > 0 {
		share = float64(p.marks) / float64(p.received)
	}
	p.alpha += (share - p.alpha) * paperGain
	if p.received > 0 {
		steps := min((now-p.began).Seconds()/p.step().Seconds(), 2)
		p.set(p.rate + markSegment/p.step().Seconds()*steps*(1-share))
	}
	p.began, p.received, p.marks = now, 0, 0
}

func (p *paper000) set(rate float64) {
	p.rate = min(max(rate, float64(p.limits.Min)), float64(p.limits.Max))
}

// Step implements Estimator.
func (p *paper000) Step(now time.Time) {
	if p.silence.step(now.Sub(p.epoch), p.rate) {
		p.stats.Silences++
		p.set(paperBackoff * p.rate)
	}
}

// Next implements Estimator.
func (p *paper000) Next() time.Time {
	if !p.silence.waiting {
		return time.Time{}
	}
	return p.epoch.Add(p.silence.due)
}

// Estimate implements Estimator.
func (p *paper000) Estimate() Bitrate { return Bitrate(p.rate) }

// Probe implements Estimator. The paper has no probes.
func (p *paper000) Probe(time.Time) (ProbeCluster, bool) { return ProbeCluster{}, false }

// Want implements Estimator. The wanted rate has no effect.
func (p *paper000) Want(time.Time, Bitrate) {}

// SetLimits implements Estimator.
func (p *paper000) SetLimits(_ time.Time, limits Limits) {
	if !p.reported {
		p.rate = float64(limits.Start)
	}
	p.limits = limits
	p.set(p.rate)
}

// Stats implements Estimator.
func (p *paper000) Stats() Stats {
	s := p.stats
	s.Estimate, s.DelayBased, s.RTT, s.Alpha = p.Estimate(), p.Estimate(), p.trip, p.alpha
	if rate, ok := p.acked.rate(); ok {
		s.Acknowledged = Bitrate(rate)
	}
	if total := s.Received + s.Lost; total > 0 {
		s.Loss = math.Min(float64(s.Lost)/float64(total), 1)
	}
	s.Window, s.ECN, s.L4S = windowOf(p.rate, p.trip+paperFrames), ecn.ECT1, L4SMarked
	return s
}
