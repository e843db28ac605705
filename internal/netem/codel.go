package netem

import (
	"math"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
)

// The parameters of CoDel for the Internet (RFC 8289, section 4.4).
const (
	// CoDelTarget is the acceptable standing queueing delay.
	CoDelTarget = 5 * time.Millisecond
	// CoDelInterval is the time for which the delay may exceed the target before the first drop: the round trip of a
	// slow path.
	CoDelInterval = 100 * time.Millisecond
)

// CoDel is the Queue of RFC 8289, "Controlled Delay": first in, first out. When packets have waited longer than
// CoDelTarget for CoDelInterval, it drops from the head, at intervals that shrink with the square root of the number of
// drops, until the delay is below the target. ECN-capable packets are marked instead of dropped.
type CoDel struct {
	limit   int
	packets packetList
	law     controlLaw
}

// NewCoDel returns a queue for at most limitBytes bytes. An empty queue accepts one packet of any size.
func NewCoDel(limitBytes int) *CoDel { return &CoDel{limit: limitBytes} }

// Enqueue adds p, or drops it if the queue would exceed the limit.
func (q *CoDel) Enqueue(p *Packet, now time.Time) (dropped int) {
	if q.packets.len() > 0 && q.packets.bytes+p.Size > q.limit {
		p.discard()
		return 1
	}
	p.queued = now
	q.packets.push(p)
	return 0
}

// Dequeue returns the packet that has waited longest, after dropping others as necessary.
func (q *CoDel) Dequeue(now time.Time) (p *Packet, dropped int) {
	return q.law.dequeue(&q.packets, now)
}

// Len returns the number of packets waiting.
func (q *CoDel) Len() int { return q.packets.len() }

func (q *CoDel) setLimit(bytes int) { q.limit = bytes }

// controlLaw is the state of CoDel for one list of packets. Names and steps are those of RFC 8289, section 5.
type controlLaw struct {
	firstAbove       time.Time // end of the interval above the target, zero if the last packet was below
	dropNext         time.Time // time of the next drop, while dropping
	count, lastCount int       // drops since dropping began, and the initial value of count
	dropping         bool
	largest          int // bytes of the largest packet so far: a queue with no more bytes is a good queue
}

// dequeue removes the next packet from the list, after the drops of the control law.
func (c *controlLaw) dequeue(list *packetList, now time.Time) (p *Packet, dropped int) {
	p, above := c.next(list, now)
	if !c.dropping {
		if above {
			return c.beginDropping(p, list, now)
		}
		return p, 0
	}
	c.dropping = above
	for c.dropping && !now.Before(c.dropNext) {
		c.count++
		if mark(p) {
			c.dropNext = c.after(c.dropNext)
			break
		}
		dropped++
		p.discard()
		p, c.dropping = c.next(list, now)
		if c.dropping {
			c.dropNext = c.after(c.dropNext)
		}
	}
	return p, dropped
}

// beginDropping drops or marks p, the first packet of a dropping phase.
func (c *controlLaw) beginDropping(p *Packet, list *packetList, now time.Time) (next *Packet, dropped int) {
	next = p
	if !mark(p) {
		dropped = 1
		p.discard()
		next, _ = c.next(list, now)
	}
	c.dropping = true
	// If the last dropping phase was recent, continue with the drop rate that controlled the queue then.
	recent := now.Sub(c.dropNext) < 16*CoDelInterval
	if delta := c.count - c.lastCount; delta > 1 && recent {
		c.count = delta
	} else {
		c.count = 1
	}
	c.dropNext = c.after(now)
	c.lastCount = c.count
	return next, dropped
}

// next removes a packet from the list, nil if it is empty, and reports whether packets have waited longer than the
// target for an interval.
func (c *controlLaw) next(list *packetList, now time.Time) (p *Packet, above bool) {
	p = list.pop()
	if p == nil {
		c.firstAbove = time.Time{}
		return nil, false
	}
	c.largest = max(c.largest, p.Size)
	switch {
	case now.Sub(p.queued) < CoDelTarget || list.bytes <= c.largest:
		c.firstAbove = time.Time{}
	case c.firstAbove.IsZero():
		c.firstAbove = now.Add(CoDelInterval)
	default:
		above = !now.Before(c.firstAbove)
	}
	return p, above
}

// after returns the time of the next drop after a drop at t.
func (c *controlLaw) after(t time.Time) time.Time {
	return t.Add(time.Duration(float64(CoDelInterval) / math.Sqrt(float64(c.count))))
}

// mark sets CE on an ECN-capable packet (RFC 3168) and reports whether it did.
func mark(p *Packet) bool {
	if p.ECN == ecn.NotECT {
		return false
	}
	p.ECN = ecn.CE
	return true
}
