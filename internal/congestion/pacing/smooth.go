package pacing

import "time"

const (
	// smoothFactor is the send rate of frames on a smooth path as a multiple of the estimate. A queue that marks
	// packets at 1 ms keeps a sender at about 1/factor of the link: the peak rate meets the marks.
	smoothFactor = 1.05
	// smoothTick is the time between two ticks on a smooth path: half of the queue at which a DualPI2 queue marks every
	// packet (RFC 9332 section 2.4: 1 ms), 5 packets at 100 Mbit/s. Ticks are at its multiples, so that a writer wakes
	// once for all its receivers and sends their packets with one system call.
	smoothTick = 500 * time.Microsecond
	// spacedTick is the time between two ticks on a spaced path, a packet each up to 192 Mbit/s, and spacedFactor the
	// send rate as a multiple of the estimate. The budget uses 0.96 of the estimate: a frame fills nearly all of its
	// interval. In shorter frames packets are closer than the mean rate, and are marked more often than those of
	// others.
	spacedTick   = 50 * time.Microsecond
	spacedFactor = 0.97
	// smoothQueue bounds the queue that a smooth path with exactly the rate of the estimate would have. A frame that
	// fills its interval of 33 ms at smoothFactor alone would build a queue of 1.6 ms. A late wake-up does not find
	// more than smoothQueue either.
	smoothQueue = time.Millisecond
	// burstFactor is the send rate of frames as a multiple of the estimate while the queue of a path with a Burst is
	// not full: a frame that fills its interval of 33 ms then takes 18.6 ms with 13 ms of queue.
	burstFactor = 1.7
)

// On a smooth path frames leave one after another, in the order in which they began, at smoothFactor × the estimate,
// and at the estimate once the modelled queue is full. Due times of packets have no effect: a frame that is short
// beside the estimate leaves sooner than the plan would send it, and no frame leaves faster than the path carries it. A
// packet of a later frame leaves only while no packet of an earlier frame is queued.

// full reports whether a packet on a smooth path has to wait for the queue.
func (r *room) full() bool { return r.queue >= r.mostQueued() }

// mostQueued returns the bytes in the queue from which on packets wait: one packet less than its bound. At rates
// below 20 Mbit/s the bytes of a tick are more: the queue is never empty at a tick while packets wait.
func (r *room) mostQueued() float64 {
	most := max(smoothQueue, time.Duration(r.burst)*time.Millisecond)
	return max(1, r.rate*float64(most)-fullPacket, r.rate*float64(r.tick))
}

// nextTick returns the first tick after a time.
func (r *room) nextTick(at time.Duration) time.Duration { return (at/r.tick + 1) * r.tick }

// smoothAt returns the earliest tick at which the rates of a smooth path permit a packet.
func (p *Pacer[P, R]) smoothAt() time.Duration {
	at := p.filled
	if p.credit <= 0 {
		at = p.refilled(p.rate, p.credit)
	}
	if r := &p.room; r.full() {
		at = max(at, p.refilled(r.rate, r.mostQueued()-r.queue))
	}
	return at
}

// nextSmooth returns the time of the next tick on a smooth path with queued packets.
func (p *Pacer[P, R]) nextSmooth() time.Duration {
	at := p.smoothAt()
	if len(p.flows.ongoing) > 0 || p.beginner(p.filled) != nil {
		return at
	}
	return max(at, p.bound.unblocked(p.flows.beginning))
}
