package pacing

import "time"

// maxRepairs bounds the queued retransmissions: 150 ms at 130 Mbit/s, after which they have expired. They take 80 kB.
const maxRepairs = 2048

// repairs is the queue of retransmissions. Retransmissions leave before media, but not faster than frames: packets
// dropped by a full queue would fill the queue again and be dropped again. While the Path is smooth, retransmissions
// and media together leave at the rate of media.
type repairs[R any] struct {
	waiting Flow[R]
	// rate is in bytes per nanosecond, 0 for no limit. credit is the number of bytes that may leave as of the pacer's
	// last fill; a negative value is a debt.
	rate, credit float64
}

// AdmitRepair reports whether a retransmission may leave at once. Without a rate limit it may.
func (p *Pacer[P, R]) AdmitRepair(now time.Duration) bool {
	if p.repairs.rate == 0 {
		return true
	}
	p.fill(now)
	p.probe.fill(now)
	return p.repairs.waiting.held == 0 && p.repairable()
}

// HoldRepair queues a retransmission that was not admitted. It returns false if the queue is full.
func (p *Pacer[P, R]) HoldRepair(r R) bool {
	if p.repairs.waiting.held == maxRepairs {
		return false
	}
	p.repairs.waiting.push(entry[R]{packet: r})
	return true
}

// PopRepair removes and returns the next retransmission of this tick. Retransmissions leave before all other packets.
// ok is false if none may leave. The caller need not send a retransmission that has expired.
func (p *Pacer[P, R]) PopRepair() (r R, ok bool) {
	if p.repairs.waiting.held == 0 || !p.repairable() {
		return r, false
	}
	return p.repairs.waiting.pop(), true
}

// ClearRepairs removes all queued retransmissions. Next may have changed.
func (p *Pacer[P, R]) ClearRepairs() { p.repairs.waiting = Flow[R]{} }

// SpendRepair accounts for a retransmission that has left, in addition to Spend.
func (p *Pacer[P, R]) SpendRepair(bytes int) { p.repairs.credit -= float64(bytes) }

// repairable reports whether the rates permit a retransmission.
func (p *Pacer[P, R]) repairable() bool {
	switch {
	case p.repairs.rate == 0:
		return true
	case p.repairs.credit <= 0:
		return false
	case p.probe.rate > 0:
		return p.probe.credit > 0
	}
	return !p.room.smooth || p.credit > 0 && !p.room.full()
}

// nextRepair returns the time of the next retransmission. ok is false if none is queued.
func (p *Pacer[P, R]) nextRepair() (at time.Duration, ok bool) {
	if p.repairs.waiting.held == 0 {
		return 0, false
	}
	at = p.filled
	if p.repairs.rate > 0 && p.repairs.credit <= 0 {
		at = p.refilled(p.repairs.rate, p.repairs.credit)
	}
	switch {
	case p.probe.rate == 0 && p.room.smooth:
		at = max(at, p.smoothAt())
	case p.probe.rate > 0 && p.probe.credit <= 0:
		at = max(at, p.probe.next(true))
	}
	return at, true
}

// fill adds the bytes that the rate allows: at most a tick, and while retransmissions are queued those of lateness, in
// nanoseconds, as well.
func (r *repairs[R]) fill(passed time.Duration, tick, lateness float64) {
	most := tick
	if r.waiting.held > 0 {
		most += r.rate * lateness
	}
	r.credit = min(r.credit+r.rate*float64(passed), most)
}
