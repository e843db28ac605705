package netem

import (
	"container/heap"
	"fmt"
	"math"
	"math/bits"
	"time"
)

// Link is one direction of a link: a queue, a transmitter and a wire. It is stepped with an explicit now and has neither goroutine nor lock.
//
// Send offers a packet; Deliver returns what has arrived by now; Next says when to call Deliver. Times must not go back: an earlier now counts as the latest one. Everything that
// happens between two calls happens at its own time, so how often a Link is stepped does not change when packets arrive, nor which ones.
type Link struct {
	config      Config
	impairments *impairments
	queue       Queue
	ownQueue    bool // the queue is the one that config describes
	now         time.Time

	transmitter transmitter

	flight    flight
	inOrder   time.Time // latest arrival of a packet that was not held back
	delivered []*Packet // returned by Deliver, reused
	offered   uint64    // packets, since the link was made
	newest    uint64    // highest order that has been delivered

	stats Stats
}

// Stats counts the packets of one Link. Sent + Duplicated = Delivered + DroppedQueue + LostRandom + LostBurst + what is waiting or on the wire.
type Stats struct {
	// Sent counts what was offered, before any loss; SentBytes sums Packet.Size.
	Sent, SentBytes uint64
	// Delivered counts what arrived, copies included.
	Delivered, DeliveredBytes uint64
	// DroppedQueue counts what the queue dropped.
	DroppedQueue uint64
	// Marked counts what the queue marked with CongestionExperienced, whether it was lost on the wire afterwards or not.
	Marked uint64
	// LostRandom and LostBurst count what was lost on the wire, by cause. A packet that both would have lost counts as LostRandom.
	LostRandom, LostBurst uint64
	// Duplicated counts copies made.
	Duplicated uint64
	// Reordered counts packets that arrived after one that was sent later (type-P-reordered of RFC 4737), whatever the cause; copies are not counted.
	Reordered uint64
}

// NewLink returns a link with the given parameters, whose random decisions follow from seed alone. Without a queue (nil) it has the one that cfg describes;
// with one, discipline and limits in cfg have no effect. The error wraps ErrConfig.
func NewLink(cfg Config, seed uint64, queue Queue) (*Link, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	l := &Link{config: cfg, impairments: newImpairments(seed), queue: queue}
	if queue == nil {
		l.queue, l.ownQueue = cfg.newQueue(cfg.RateBPS), true
	}
	l.transmitter.hold(uint64(cfg.RateBPS), time.Time{})
	return l, nil
}

// newQueue makes the queue for a bottleneck of the given rate.
func (c *Config) newQueue(rateBPS int) limited {
	limit := c.queueLimit(rateBPS)
	switch c.Queue {
	case QueueCoDel:
		return NewCoDel(limit)
	case QueueFQ:
		return NewFairQueue(limit)
	case QueueFQCoDel:
		return NewFQCoDel(limit)
	case QueueDualPI2:
		return NewDualPI2(limit)
	case QueuePaper000:
		return NewL4SPriority(rateBPS, limit)
	default:
		return NewDropTail(limit)
	}
}

// queueLimit is the smaller of the two limits, in bytes. At an unlimited rate nothing waits, but for a packet that was taken before the rate became so.
func (c *Config) queueLimit(rateBPS int) int {
	if rateBPS == 0 {
		return math.MaxInt
	}
	limit := uint64(c.QueueBytes)
	if c.QueueDelay > 0 {
		// rate [bit/s] × delay [ns] / 8e9 = bytes. The product may exceed 64 bits; the quotient cannot, with a rate of at most 1e12 and a delay of at most 6e10.
		hi, lo := bits.Mul64(uint64(rateBPS), uint64(c.QueueDelay))
		inTime, _ := bits.Div64(hi, lo, 8e9)
		if limit == 0 || inTime < limit {
			limit = inTime
		}
	}
	return int(limit)
}

// Reconfigure changes the parameters from now on, and ends a trace. What has been transmitted by now, or is in transmission, keeps its arrival; what waits is
// transmitted at the new rate, with the losses and delays that it was offered with. Random streams go on. The queue that the old parameters described gets the new limit, and keeps
// what it holds even if that is more; if the discipline is another one, the packets move to a queue of that discipline. The error wraps ErrConfig.
func (l *Link) Reconfigure(cfg Config, now time.Time) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	l.advance(now)
	l.adjustQueue(&cfg, cfg.RateBPS)
	l.config = cfg
	l.transmitter.hold(uint64(cfg.RateBPS), l.now)
	return nil
}

// SetRate makes the rate that of a trace, which begins now, in place of Config.RateBPS; a packet in transmission when the rate steps is transmitted in part at the one
// and in part at the other. What is in transmission now keeps its arrival. A queue limit in time is meant at the mean rate of the trace. The trace must not change from then
// on. The error wraps ErrTrace, or ErrConfig if the link's parameters limit the queue neither in bytes nor in time.
func (l *Link) SetRate(trace RateTrace, now time.Time) error {
	if err := l.checkRate(&trace); err != nil {
		return err
	}
	l.advance(now)
	l.adjustQueue(&l.config, max(trace.Mean(), 1))
	l.transmitter.follow(&trace, l.now)
	return nil
}

// Impair changes all parameters but the rate from now on, as Reconfigure does; a trace goes on. The error wraps ErrConfig.
func (l *Link) Impair(cfg Config, now time.Time) error {
	cfg.RateBPS = l.config.RateBPS
	rate := cfg.RateBPS
	if trace := l.transmitter.trace; trace != nil {
		if l.ownQueue && cfg.QueueBytes == 0 && cfg.QueueDelay == 0 {
			return errUnlimitedQueue()
		}
		rate = max(trace.Mean(), 1)
	}
	if err := cfg.Validate(); err != nil {
		return err
	}
	l.advance(now)
	l.adjustQueue(&cfg, rate)
	l.config = cfg
	return nil
}

// errUnlimitedQueue says that a queue before a rate that follows a trace has no limit.
func errUnlimitedQueue() error {
	return fmt.Errorf("%w: queue_bytes and queue_delay are 0, expected a limit because the rate follows a trace", ErrConfig)
}

// checkRate reports what SetRate would refuse.
func (l *Link) checkRate(trace *RateTrace) error {
	if l.ownQueue && l.config.QueueBytes == 0 && l.config.QueueDelay == 0 {
		return errUnlimitedQueue()
	}
	return trace.Validate()
}

// adjustQueue makes the queue the one that cfg describes for a bottleneck of the given rate, unless the queue was given.
func (l *Link) adjustQueue(cfg *Config, rateBPS int) {
	if !l.ownQueue {
		return
	}
	if cfg.Queue == l.config.Queue {
		l.queue.(limited).setLimit(cfg.queueLimit(rateBPS))
		if q, ok := l.queue.(rated); ok {
			q.setRate(rateBPS)
		}
		return
	}
	replacement := cfg.newQueue(rateBPS)
	for l.queue.Len() > 0 {
		p, dropped := l.queue.Dequeue(l.now)
		l.stats.DroppedQueue += uint64(dropped)
		if p != nil {
			l.stats.DroppedQueue += uint64(replacement.Enqueue(p, l.now))
		}
	}
	l.queue = replacement
}

// Stats returns the counters.
func (l *Link) Stats() Stats { return l.stats }

// ResetStats sets the counters to 0. What is on its way then still counts as delivered or lost later.
func (l *Link) ResetStats() { l.stats = Stats{} }

// Busy tells whether a packet offered now would wait for others.
func (l *Link) Busy(now time.Time) bool {
	l.advance(now)
	return l.queue.Len() > 0 || l.transmitter.idleAt.After(l.now)
}

// Waiting is the number of packets in the queue, as of the last call of Send or Deliver.
func (l *Link) Waiting() int { return l.queue.Len() }

// Send offers a packet, which belongs to the link from then on.
func (l *Link) Send(p *Packet, now time.Time) {
	l.advance(now)
	l.stats.Sent++
	l.stats.SentBytes += uint64(p.Size)
	l.offered++
	p.order, p.copy, p.fate = l.offered, false, l.impairments.next(&l.config)
	p.offered = p.ECN
	if l.queue.Len() == 0 {
		l.transmitter.rest(l.now)
	}
	p.queued = l.now
	l.stats.DroppedQueue += uint64(l.queue.Enqueue(p, l.now))
	l.transmit()
}

// Next returns a time at which Deliver is to be called: no packet arrives before it, though there may be none at it, either. It is zero if nothing waits or is on the wire.
func (l *Link) Next() time.Time {
	var next time.Time
	if len(l.flight) > 0 {
		next = l.flight[0].Arrival
	}
	if l.queue.Len() > 0 {
		// What waits is not transmitted before the transmitter is idle.
		if earliest := l.transmitter.idleAt.Add(l.config.leastDelay()); next.IsZero() || earliest.Before(next) {
			next = earliest
		}
	}
	return next
}

// Deliver returns the packets that have arrived by now, in the order of their arrival. The slice is valid until the next call; the packets belong to the caller.
func (l *Link) Deliver(now time.Time) []*Packet {
	l.advance(now)
	clear(l.delivered)
	l.delivered = l.delivered[:0]
	for len(l.flight) > 0 && !l.flight[0].Arrival.After(l.now) {
		p := heap.Pop(&l.flight).(*Packet)
		l.stats.Delivered++
		l.stats.DeliveredBytes += uint64(p.Size)
		switch {
		case p.copy:
		case p.order < l.newest:
			l.stats.Reordered++
		default:
			l.newest = p.order
		}
		l.delivered = append(l.delivered, p)
	}
	return l.delivered
}

// advance makes everything happen that happens by now.
func (l *Link) advance(now time.Time) {
	if now.After(l.now) {
		l.now = now
	}
	l.transmit()
}

// transmit takes packets from the queue for as long as the transmitter is idle by now.
func (l *Link) transmit() {
	for l.queue.Len() > 0 && l.transmitter.ready(l.now) {
		p, dropped := l.queue.Dequeue(l.transmitter.idleAt)
		l.stats.DroppedQueue += uint64(dropped)
		if p == nil {
			return
		}
		p.Waited = l.transmitter.idleAt.Sub(p.queued)
		if p.ECN == CongestionExperienced && p.offered != CongestionExperienced {
			l.stats.Marked++
		}
		l.transmitter.occupy(p.Size)
		l.propagate(p)
	}
}

// propagate puts a packet on the wire, at the time at which the transmitter has sent it.
func (l *Link) propagate(p *Packet) {
	switch p.fate.loss {
	case lossRandom:
		l.stats.LostRandom++
		p.discard()
		return
	case lossBurst:
		l.stats.LostBurst++
		p.discard()
		return
	}
	if p.fate.duplicate {
		l.stats.Duplicated++
		c := p.clone()
		c.Arrival = l.arrival(p.fate.copyDelay)
		heap.Push(&l.flight, c)
	}
	p.Arrival = l.arrival(p.fate.delay)
	if p.fate.held {
		p.Arrival = p.Arrival.Add(l.config.ReorderDelay)
	} else if p.Arrival.After(l.inOrder) {
		l.inOrder = p.Arrival
	}
	heap.Push(&l.flight, p)
}

// arrival is when something arrives that has just been transmitted and is delayed. Unless jitter may reorder, it is not before what was sent earlier. A packet held back,
// and a copy, hold up nobody.
func (l *Link) arrival(delay time.Duration) time.Time {
	at := l.transmitter.idleAt.Add(delay)
	if !l.config.JitterReorders && at.Before(l.inOrder) {
		return l.inOrder
	}
	return at
}
