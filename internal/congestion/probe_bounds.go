package congestion

import "time"

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

// missing tells whether more than the estimate is wanted.
func (p *prober) missing(estimate float64) bool {
	return estimate < near*min(p.want, float64(p.limits.Max))
}
