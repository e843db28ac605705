package pacing

import "time"

// Path describes the path to a receiver. The zero Path is unknown and limits nothing.
type Path struct {
	// Estimate is the rate that the sender may use, 0 for no limit. Carried is the assumed capacity of the path while
	// the estimate is lower to drain a queue. In bit/s.
	Estimate, Carried int64
	// Evenly is set if frames should be sent evenly: cross traffic keeps the queue of the path full, or the queue is
	// too short for bursts.
	Evenly bool
	// Unmarked is set if the path has not marked packets for a long time although it passes ECT: frames leave as slowly
	// as with Evenly, so that they do not fill a queue that marks, but may lead.
	Unmarked bool
	// ApplicationLimited is set if the sender uses much less than the estimate.
	ApplicationLimited bool
	// Smooth is set while the queue of the path marks packets (RFC 9331): frames leave one after another at the
	// estimate.
	Smooth bool
	// Spaced is set while the queue of a smooth path marks the packets of a tick beyond the first: packets leave in
	// ticks of 50 µs, and a frame is spread over its interval.
	Spaced bool
	// Burst is the queue that a smooth path with the rate of the estimate may have at most, in milliseconds at that
	// rate: 0 for 1 ms. Frames begin faster if it is more.
	Burst uint8
	// Window bounds the bytes in flight, see SetInFlight: a frame begins only if it fits. 0 is no bound.
	Window int
}

// Leads reports whether packets may leave before they are due. Only frames that take much less than the estimate
// benefit; other frames are sent by their schedule before the path has delivered them. A sender that uses its estimate
// would also take capacity from others at the bottleneck: beside three Cubic flows in a FIFO of one bandwidth-delay
// product 2.06 instead of 1.96 times its share, the mean of 27 runs.
func (p Path) Leads() bool { return p.ApplicationLimited && !p.Evenly && !p.Smooth }

// Factor returns the send rate of frames as a multiple of the estimate: a frame that fills its interval is sent within
// 0.4 of it, 0.8 if Evenly or Unmarked is set, 0.95 if Smooth is set, or 1.03 if Spaced is set as well. With a Burst it
// begins at 1.7 times the estimate.
func (p Path) Factor() float64 {
	switch {
	case p.Smooth && p.Spaced:
		return spacedFactor
	case p.Smooth && p.Burst > 0:
		return burstFactor
	case p.Smooth:
		return smoothFactor
	case p.Evenly || p.Unmarked:
		return evenFactor
	}
	return rateFactor
}

// SetPath sets the common rate of all current frames to Factor × the estimate, and limits all packets to the estimate
// in the longer term. Retransmissions have a rate of their own: 2.5 × the assumed capacity of the path, while the
// estimate is lower to drain a queue. If Smooth is set, retransmissions share the rate of the frames. If packets do not
// lead any more, current frames continue by their schedule. An estimate of 0 removes all limits; Smooth then determines
// the ticks of probes only.
func (p *Pacer[P, R]) SetPath(path Path, now time.Duration) {
	p.fill(now)
	estimate := bytesPerNanosecond(path.Estimate)
	p.smoothProbes = path.Smooth
	if estimate == 0 {
		path.Smooth, path.Window = false, 0
	}
	begins := p.rate == 0
	p.rate, p.room.rate = path.Factor()*estimate, estimate
	p.repairs.rate = p.rate
	if p.rate > 0 && !path.Smooth {
		p.repairs.rate = max(p.rate, rateFactor*bytesPerNanosecond(path.Carried))
	}
	p.lead.rate, p.lead.open = 0, false
	if p.plan.early {
		p.lead.rate = min(estimate, bytesPerNanosecond(EarlyRate))
		p.lead.open = p.rate > 0 && path.Leads()
	}
	p.room.smooth = path.Smooth
	p.flows.setByTurn(path.Smooth)
	p.room.tick, p.room.burst = smoothTick, path.Burst
	if path.Spaced {
		p.room.tick = spacedTick
	}
	p.setWindow(path.Window)
	if begins {
		p.credit, p.room.bytes, p.lead.bytes, p.room.queue = 0, estimate*float64(frameSlack), 0, 0
		p.repairs.credit = p.tick(p.repairs.rate)
	}
}

func bytesPerNanosecond(bitsPerSecond int64) float64 {
	return float64(max(bitsPerSecond, 0)) / 8 / float64(time.Second)
}

// tick returns the bytes of one tick at a rate: max(1 packet, min(16 packets, 2 ms at the rate)), or 0.5 ms at the rate
// while the Path is smooth, 50 µs while it is spaced.
func (p *Pacer[P, R]) tick(rate float64) float64 {
	if p.room.smooth {
		return max(1, rate*float64(p.room.tick))
	}
	return p.plan.tick(rate)
}

// refilled returns the time of the next full tick at a rate, if bytes may leave as of the last fill. While the Path is
// smooth, it is the first tick at which a packet may leave.
func (p *Pacer[P, R]) refilled(rate, bytes float64) time.Duration {
	if p.room.smooth {
		return p.room.nextTick(p.filled + time.Duration((1-bytes)/rate))
	}
	return p.filled + time.Duration((p.tick(rate)-bytes)/rate) + 1
}

// fill adds the bytes that the rates allow since the last fill. At most one tick is kept, and while packets wait also
// the allowance for a late wake-up.
func (p *Pacer[P, R]) fill(now time.Duration) {
	passed := now - p.filled
	most := p.tick(p.rate)
	if p.held > 0 && (p.waits || !p.room.smooth) {
		most += p.rate * p.room.lateness()
	}
	p.credit = max(p.credit, -fullPacket-p.rate*float64(maxDebt))
	p.credit = min(p.credit+p.rate*float64(passed), most)
	p.room.fill(passed)
	p.lead.fill(passed, p.tick(p.lead.rate), p.held > 0)
	p.repairs.fill(passed, p.tick(p.repairs.rate), p.room.lateness())
	p.filled, p.waits = now, p.held > 0
}
