package pacing

import "time"

// Path is what a Pacer goes by: what is known of the way to its receiver. Of the zero Path nothing is known, and it limits nothing.
type Path struct {
	// Estimate is what the sender may use, 0 for no limit. Carried is what the path is taken to carry while the estimate is below that to empty a queue. In bit/s.
	Estimate, Carried int64
	// Evenly says that frames had better leave evenly: others keep the queue of the path full, or it is too short for bursts.
	Evenly bool
	// ApplicationLimited says that the sender uses much less than the estimate.
	ApplicationLimited bool
}

// Leads tells whether packets may leave before they are due. That serves frames that take much less than the estimate; others are through by their schedule before the path would be. And a
// sender that uses its estimate would take of others at the bottleneck by it: beside three flows of Cubic in a FIFO of one bandwidth-delay product 2.06 rather than 1.96 times its share, the mean of 27
// runs.
func (p Path) Leads() bool { return p.ApplicationLimited && !p.Evenly }

// Factor is how many times the estimate frames may leave at: the last of one that fills its interval leaves after 0.4 of it, or 0.8 where that has to be.
func (p Path) Factor() float64 {
	if p.Evenly {
		return evenFactor
	}
	return rateFactor
}

// SetPath makes 2.5 × the estimate the rate which all frames under way share, 1.25 × where they had better leave evenly, and keeps what they take in the longer term, with all that leaves
// beside them, within the estimate. Retransmissions leave at 2.5 × another rate: what the path carries while the estimate is below that to empty a queue. Frames under way go on by their
// schedule where packets do not lead any more. An estimate of 0 lifts all limits.
func (p *Pacer[P, R]) SetPath(path Path, now time.Duration) {
	p.fill(now)
	estimate := bytesPerNanosecond(path.Estimate)
	begins := p.rate == 0
	p.rate, p.room.rate, p.repairs.rate = path.Factor()*estimate, estimate, 0
	if p.rate > 0 {
		p.repairs.rate = max(p.rate, rateFactor*bytesPerNanosecond(path.Carried))
	}
	p.lead.rate, p.lead.open = 0, false
	if p.plan.early {
		p.lead.rate = min(estimate, bytesPerNanosecond(EarlyRate))
		p.lead.open = p.rate > 0 && path.Leads()
	}
	if begins {
		p.credit, p.room.bytes, p.lead.bytes, p.repairs.credit = 0, estimate*float64(frameSlack), 0, p.tick(p.repairs.rate)
	}
}

func bytesPerNanosecond(bitsPerSecond int64) float64 {
	return float64(max(bitsPerSecond, 0)) / 8 / float64(time.Second)
}

// tick is what leaves in one tick at a rate, in bytes: max(1 packet, min(16 packets, 2 ms at the rate)).
func (p *Pacer[P, R]) tick(rate float64) float64 {
	return max(1, min(float64(p.plan.most)*fullPacket, rate*float64(p.plan.ahead)))
}

// refilled is when a tick may leave at a rate, of which so many bytes may leave as of the last fill.
func (p *Pacer[P, R]) refilled(rate, bytes float64) time.Duration {
	return p.filled + time.Duration((p.tick(rate)-bytes)/rate) + 1
}

// fill adds what the rates have allowed since the last time. Of what is not used one tick is kept, and while packets wait what a late wake-up needs.
func (p *Pacer[P, R]) fill(now time.Duration) {
	passed := now - p.filled
	most := p.tick(p.rate)
	if p.held > 0 {
		most += p.rate * float64(slack)
	}
	p.credit = max(p.credit, -fullPacket-p.rate*float64(maxDebt))
	p.credit = min(p.credit+p.rate*float64(passed), most)
	p.room.fill(passed)
	p.lead.fill(passed, p.tick(p.lead.rate), p.held > 0)
	p.fillRepairs(passed)
	p.filled = now
}
