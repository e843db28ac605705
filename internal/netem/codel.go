package netem

import (
	"math"
	"time"
)

// The parameters of CoDel for the Internet (RFC 8289, section 4.4).
const (
	// CoDelTarget is how long packets may wait all the time.
	CoDelTarget = 5 * time.Millisecond
	// CoDelInterval is how long they may wait longer before the first is dropped: the round trip of a slow path.
	CoDelInterval = 100 * time.Millisecond
)

// CoDel is the Queue of RFC 8289, "Controlled Delay": first in, first out, but once packets have waited longer than CoDelTarget for CoDelInterval, it drops
// from the head, at intervals that shrink with the square root of the number of drops, until they wait less. A packet that says it understands ECN is marked instead of dropped.
type CoDel struct {
	limit   int
	packets packetList
	law     controlLaw
}

// NewCoDel returns a queue for at most limitBytes bytes. An empty queue takes one packet of any size.
func NewCoDel(limitBytes int) *CoDel { return &CoDel{limit: limitBytes} }

// Enqueue takes p, or drops it if the bytes waiting would exceed the limit.
func (q *CoDel) Enqueue(p *Packet, now time.Time) (dropped int) {
	if q.packets.len() > 0 && q.packets.bytes+p.Size > q.limit {
		p.discard()
		return 1
	}
	p.queued = now
	q.packets.push(p)
	return 0
}

// Dequeue gives the packet that has waited longest, after those that it drops.
func (q *CoDel) Dequeue(now time.Time) (p *Packet, dropped int) {
	return q.law.dequeue(&q.packets, now)
}

// Len is the number of packets waiting.
func (q *CoDel) Len() int { return q.packets.len() }

func (q *CoDel) setLimit(bytes int) { q.limit = bytes }

// controlLaw is the state of CoDel for one list of packets. Names and steps are those of RFC 8289, section 5.
type controlLaw struct {
	firstAbove       time.Time // when packets will have waited longer than the target for an interval, zero if the last one did not
	dropNext         time.Time // when the next one is dropped, while dropping
	count, lastCount int       // drops since dropping began, and what count began with
	dropping         bool
	largest          int // bytes of the largest packet so far: a queue that holds no more is a good one
}

// dequeue takes the next packet out of the list, after dropping what the law says.
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

// beginDropping drops or marks p, the first packet that is to be.
func (c *controlLaw) beginDropping(p *Packet, list *packetList, now time.Time) (next *Packet, dropped int) {
	next = p
	if !mark(p) {
		dropped = 1
		p.discard()
		next, _ = c.next(list, now)
	}
	c.dropping = true
	// If it has dropped until recently, it goes on from the rate that held the queue then.
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

// next takes a packet out of the list, nil if it is empty, and tells whether packets have waited longer than the target for an interval.
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

// after is when the next packet is dropped after one was at t.
func (c *controlLaw) after(t time.Time) time.Time {
	return t.Add(time.Duration(float64(CoDelInterval) / math.Sqrt(float64(c.count))))
}

// mark tells the receiver of congestion, if the packet says that this is understood (RFC 3168).
func mark(p *Packet) bool {
	if p.ECN == NotECT {
		return false
	}
	p.ECN = CongestionExperienced
	return true
}
