package congestion

import (
	"time"

	"github.com/volsfu/volsfu/internal/congestion/pacing"
)

// wanted sets the rate that the allocator would send. If the rate grows beyond the estimate, the next probe is due at
// once.
func (p *prober) wanted(now time.Duration, rate float64) {
	if rate > p.want && p.want < p.estimate {
		p.interval = p.cfg.IntervalMin
		p.due = min(p.due, now)
	}
	p.want = rate
}

// limit changes the limits. A pending cluster above Limits.Max is reduced to that rate, and dropped if that hardly
// exceeds the estimate.
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

// wantsMore reports whether the wanted rate exceeds the estimate.
func (p *prober) wantsMore(estimate float64) bool {
	return estimate < near*min(p.want, float64(p.limits.Max))
}

// wantsHeadroom reports whether frames would leave sooner with a larger estimate, once the wanted rate is reached.
func (p *prober) wantsHeadroom(estimate float64) bool {
	return !p.starting && estimate < near*min(p.headroomRate(), float64(p.limits.Max))
}

// headroomRate returns the estimate above which frames leave no sooner, or hardly any sooner.
func (p *prober) headroomRate() float64 { return min(p.cfg.Ample*p.want, pacing.EarlyRate) }

// maxInterval returns the longest interval between two probes that find no more capacity. An estimate above the wanted
// rate only makes frames leave sooner, which is worth little compared with the effect of a probe on a path with a short
// queue.
func (p *prober) maxInterval() time.Duration {
	if p.wantsMore(p.estimate) {
		return p.cfg.IntervalMax
	}
	return max(p.cfg.IntervalMax, headroomIntervalMax)
}

// maxProbeRate returns the largest rate of a probe.
func (p *prober) maxProbeRate() float64 {
	if p.wantsMore(p.estimate) {
		return wantScale * p.want
	}
	return max(wantScale*p.want, p.headroomRate())
}
