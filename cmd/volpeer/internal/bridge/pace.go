package bridge

import "time"

const (
	// burst is how many datagrams are sent to the connector at once: a frame of 100 kB. Each takes 2,304 bytes of its socket's buffer, which holds 92 by
	// default where the connector does not read meanwhile.
	burst = 88
	// datagramTime is what each takes beyond, at 650 Mbit/s: a connector reads one in a fraction of that.
	datagramTime = 16 * time.Microsecond
	// leastBurst is what is worth waking up for.
	leastBurst = burst / 4
)

// Pace keeps the connector's socket from overflowing: a bucket of datagrams that fills up again with time.
type Pace struct{ full time.Time }

// Take takes up to n datagrams by now, and returns how many may be sent at once. Where it is none, wait says when to ask again.
func (p *Pace) Take(now time.Time, n int) (taken int, wait time.Duration) {
	if p.full.Before(now) {
		p.full = now
	}
	debt := p.full.Sub(now)
	room := burst - int((debt+datagramTime-1)/datagramTime)
	if room < min(n, leastBurst) {
		return 0, debt - time.Duration(burst-min(n, leastBurst))*datagramTime
	}
	taken = min(n, room)
	p.full = p.full.Add(time.Duration(taken) * datagramTime)
	return taken, 0
}
