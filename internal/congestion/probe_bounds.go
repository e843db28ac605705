package congestion

import (
	"time"

	"github.com/volsfu/volsfu/internal/congestion/pacing"
)

// wanted takes what the allocator would send. A step up that it could not make before is probed for soon.
func (p *prober) wanted(now time.Duration, rate float64) {
	if rate > p.want && p.want < p.estimate {
		p.interval = p.cfg.IntervalMin
		p.due = min(p.due, now)
	}
	p.want = rate
}

// limit takes other limits. What is planned beyond the largest estimate goes no further than that, and is left out where that is hardly more than the
// estimate.
func (p *prober) limit(limits Limits) {
	if p.want == float64(p.limits.Max) {
		p.want = float64(limits.Max)
	}
	p.limits = limits
	most := float64(limits.Max)
	for i := range p.count {
		c := &p.pending[i]
		if c.Rate < limits.Max {
			continue
		}
		p.count, p.further = i, 0
		if most > p.estimate/near {
			c.Rate, c.MinBytes = limits.Max, int(most*c.Duration.Seconds()/8)
			p.count++
		}
		return
	}
}

// wantsMore tells whether more than the estimate is wanted.
func (p *prober) wantsMore(estimate float64) bool {
	return estimate < near*min(p.want, float64(p.limits.Max))
}

// wantsHeadroom tells whether what is wanted is there, but frames would leave sooner with a larger estimate.
func (p *prober) wantsHeadroom(estimate float64) bool {
	return !p.starting && estimate < near*min(p.headroomRate(), float64(p.limits.Max))
}

// headroomRate is the estimate beyond which frames leave no sooner, or not by much.
func (p *prober) headroomRate() float64 { return min(p.cfg.Ample*p.want, pacing.EarlyRate) }

// maxInterval is the longest time between two probes that find nothing: what would only let frames leave sooner is worth little beside what a probe does to a path with a short queue.
func (p *prober) maxInterval() time.Duration {
	if p.wantsMore(p.estimate) {
		return p.cfg.IntervalMax
	}
	return max(p.cfg.IntervalMax, headroomIntervalMax)
}

// maxProbeRate is the largest rate that is worth a probe.
func (p *prober) maxProbeRate() float64 {
	if p.wantsMore(p.estimate) {
		return wantScale * p.want
	}
	return max(wantScale*p.want, p.headroomRate())
}
