package netem

import (
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
)

// meterDepth is the burst size of a meter, as a time at its rate: 125 kB at 100 Mbit/s. Paper 000 does not specify it.
// The paper's sender reaches 90 Mbit/s without marks above 100, with 30 frames per second each sent within 20 ms, that
// is at 150 Mbit/s: (150 - 100) Mbit/s × 20 ms = 125 kB have to fit.
const meterDepth = 10 * time.Millisecond

// L4SPriority is the queue of De Fré et al., "Low-Latency Volumetric Video Conferencing in Congested Networks Through
// L4S" (paper 000), section 4.3. Packets of L4S flows (ECT(1) or CE) are dropped above the link's rate, and marked
// above half of it; the others are served before all classic packets. Each class is a FairQueue. In the paper the rate
// is 200 Mbit/s, so packets are dropped above 200 and marked above 100 Mbit/s.
type L4SPriority struct {
	policer, marker meter
	l4s, classic    *FairQueue
}

// NewL4SPriority returns a queue for a link of rateBPS bit/s, 0 for unlimited, with at most limitBytes bytes in each of
// the classes. An empty class accepts one packet of any size.
func NewL4SPriority(rateBPS, limitBytes int) *L4SPriority {
	q := &L4SPriority{l4s: NewFairQueue(limitBytes), classic: NewFairQueue(limitBytes)}
	q.setRate(rateBPS)
	return q
}

// Enqueue adds p, and drops packets of the longest flow of its class beyond the limit, possibly p. It drops p if L4S
// flows exceed the rate.
func (q *L4SPriority) Enqueue(p *Packet, now time.Time) (dropped int) {
	if !p.ECN.L4S() {
		return q.classic.Enqueue(p, now)
	}
	if !q.policer.conforms(p.Size, now) {
		p.discard()
		return 1
	}
	if !q.marker.conforms(p.Size, now) {
		p.ECN = ecn.CE
	}
	return q.l4s.Enqueue(p, now)
}

// Dequeue returns the next packet of the L4S class, or of the classic class if there is none.
func (q *L4SPriority) Dequeue(now time.Time) (p *Packet, dropped int) {
	if q.l4s.Len() > 0 {
		return q.l4s.Dequeue(now)
	}
	return q.classic.Dequeue(now)
}

// Len returns the number of packets waiting.
func (q *L4SPriority) Len() int { return q.l4s.Len() + q.classic.Len() }

func (q *L4SPriority) setLimit(bytes int) {
	q.l4s.setLimit(bytes)
	q.classic.setLimit(bytes)
}

func (q *L4SPriority) setRate(bps int) { q.policer.rate, q.marker.rate = bps, bps/2 }

// meter reports whether packets exceed a rate: a token bucket of meterDepth at that rate.
type meter struct {
	rate int       // in bit/s, 0 = unlimited
	full time.Time // time at which the bucket is full again
}

// conforms removes a packet's bytes from the bucket, down to one packet below empty. It returns false, and removes
// nothing, if the bucket is empty.
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
