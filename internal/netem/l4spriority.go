package netem

import "time"

// meterDepth is how much more than its rate may come at once before a meter calls it too much, as a time at that rate: 125 kB at 100 Mbit/s. Paper 000 does not tell the depth of its
// meters. Its own sender reaches 90 Mbit/s without marks above 100, with 30 frames a second each of which is sent within 20 ms, and so at 150 Mbit/s: (150 - 100) Mbit/s × 20 ms
// = 125 kB have to fit.
const meterDepth = 10 * time.Millisecond

// L4SPriority is the queue of De Fré et al., "Low-Latency Volumetric Video Conferencing in Congested Networks Through L4S" (paper 000), section 4.3. Packets of L4S flows (ECT(1) or CE) are dropped when they
// come faster than the link's rate, and marked when they come faster than half of that; what passes is served before all others. Either class is a FairQueue. In the paper the
// rate is 200 Mbit/s, so they are dropped above 200 and marked above 100 Mbit/s.
type L4SPriority struct {
	policer, marker meter
	l4s, classic    *FairQueue
}

// NewL4SPriority returns a queue for a link of rateBPS bit/s, 0 for one without limit, with at most limitBytes bytes in each of the classes. An empty class takes one packet of any size.
func NewL4SPriority(rateBPS, limitBytes int) *L4SPriority {
	q := &L4SPriority{l4s: NewFairQueue(limitBytes), classic: NewFairQueue(limitBytes)}
	q.setRate(rateBPS)
	return q
}

// Enqueue takes p, and drops for it from the longest flow of its class what exceeds the limit, perhaps p; or it drops p because L4S flows exceed the rate.
func (q *L4SPriority) Enqueue(p *Packet, now time.Time) (dropped int) {
	if !isL4S(p) {
		return q.classic.Enqueue(p, now)
	}
	if !q.policer.conforms(p.Size, now) {
		p.discard()
		return 1
	}
	if !q.marker.conforms(p.Size, now) {
		p.ECN = CongestionExperienced
	}
	return q.l4s.Enqueue(p, now)
}

// Dequeue gives the next packet of the L4S class, or where that is empty of the other one.
func (q *L4SPriority) Dequeue(now time.Time) (p *Packet, dropped int) {
	if q.l4s.Len() > 0 {
		return q.l4s.Dequeue(now)
	}
	return q.classic.Dequeue(now)
}

// Len is the number of packets waiting.
func (q *L4SPriority) Len() int { return q.l4s.Len() + q.classic.Len() }

func (q *L4SPriority) setLimit(bytes int) {
	q.l4s.setLimit(bytes)
	q.classic.setLimit(bytes)
}

func (q *L4SPriority) setRate(bps int) { q.policer.rate, q.marker.rate = bps, bps/2 }

// meter tells whether packets come faster than a rate: a bucket that holds meterDepth of it.
type meter struct {
	rate int       // in bit/s, 0 = unlimited
	full time.Time // when the bucket will be full again
}

// conforms takes a packet's bytes out of the bucket, down to one packet below nothing; it is false, and takes nothing, where that has been reached.
func (m *meter) conforms(size int, now time.Time) bool {
	if m.rate == 0 {
		return true
	}
	full := m.full
	if full.Before(now) {
		full = now
	}
	if full.Sub(now) > meterDepth {
		return false
	}
	m.full = full.Add(time.Duration(uint64(size) * 8 * uint64(time.Second) / uint64(m.rate)))
	return true
}
