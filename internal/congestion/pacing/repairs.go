package pacing

import "time"

// maxRepairs bounds the retransmissions that wait: 150 ms at 130 Mbit/s, after which they are of no use. They take 80 kB.
const maxRepairs = 2048

// repairs are the retransmissions that wait. They leave ahead of media, but no faster than frames do: what a full queue has dropped would fill it again, and be
// dropped again.
type repairs[R any] struct {
	waiting Flow[R]
	// rate is in bytes per nanosecond, 0 without limit. credit is how many bytes may leave as of the pacer's last fill; below 0 it is owed.
	rate, credit float64
}

// AdmitRepair tells whether a retransmission may leave at once. Without limit of rate it may.
func (p *Pacer[P, R]) AdmitRepair(now time.Duration) bool {
	if p.repairs.rate == 0 {
		return true
	}
	p.fill(now)
	p.probe.fill(now)
	return p.repairs.waiting.held == 0 && p.repairable()
}

// HoldRepair makes a retransmission wait that was not admitted. It returns false if too many do.
func (p *Pacer[P, R]) HoldRepair(r R) bool {
	if p.repairs.waiting.held == maxRepairs {
		return false
	}
	p.repairs.waiting.push(entry[R]{packet: r})
	return true
}

// PopRepair takes the retransmission that leaves next in this tick, before anything else. It is not ok when none may. Those that are of no use any more need
// not be sent.
func (p *Pacer[P, R]) PopRepair() (r R, ok bool) {
	if p.repairs.waiting.held == 0 || !p.repairable() {
		return r, false
	}
	return p.repairs.waiting.pop(), true
}

// ClearRepairs takes out all retransmissions that wait. Next may have changed.
func (p *Pacer[P, R]) ClearRepairs() { p.repairs.waiting = Flow[R]{} }

// SpendRepair accounts for a retransmission that has left, beside Spend.
func (p *Pacer[P, R]) SpendRepair(bytes int) { p.repairs.credit -= float64(bytes) }

// repairable tells whether the rates let a retransmission leave.
func (p *Pacer[P, R]) repairable() bool {
	return p.repairs.rate == 0 || p.repairs.credit > 0 && (p.probe.rate == 0 || p.probe.credit > 0)
}

// nextRepair is when retransmissions may leave that wait. It is not ok while none waits.
func (p *Pacer[P, R]) nextRepair() (at time.Duration, ok bool) {
	if p.repairs.waiting.held == 0 {
		return 0, false
	}
	at = p.filled
	if p.repairs.rate > 0 && p.repairs.credit <= 0 {
		at = p.refilled(p.repairs.rate, p.repairs.credit)
	}
	if p.probe.rate > 0 && p.probe.credit <= 0 {
		at = max(at, p.probe.next(true))
	}
	return at, true
}

// fillRepairs adds what the rate of retransmissions has allowed.
func (p *Pacer[P, R]) fillRepairs(passed time.Duration) {
	r := &p.repairs
	most := p.tick(r.rate)
	if r.waiting.held > 0 {
		most += r.rate * float64(slack)
	}
	r.credit = min(r.credit+r.rate*float64(passed), most)
}
