package netem

import (
	"container/heap"
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
)

// Link is one direction of a link: a queue, a transmitter and a wire. It is stepped with an explicit now and has
// neither goroutine nor lock.
//
// Send offers a packet; Deliver returns the packets that have arrived by now; Next returns the time of the next
// Deliver. Times must not decrease: an earlier now counts as the latest one. All events between two calls have their
// own time, so the frequency of calls changes neither which packets arrive nor when.
type Link struct {
	config      Config
	impairments *impairments
	queue       Queue
	ownQueue    bool // the queue is described by config
	now         time.Time

	transmitter transmitter

	flight    flight
	inOrder   time.Time // latest arrival of a packet that was not held back
	delivered []*Packet // returned by Deliver, reused
	offered   uint64    // packets, since the link was made
	newest    uint64    // highest delivered order

	stats Stats
}

// Stats are the counters of one Link. Sent + Duplicated = Delivered + DroppedECN + DroppedQueue + LostRandom +
// LostBurst + packets waiting or on the wire.
type Stats struct {
	// Sent counts offered packets, before any loss; SentBytes sums Packet.Size.
	Sent, SentBytes uint64
	// Delivered counts arrived packets, copies included.
	Delivered, DeliveredBytes uint64
	// DroppedECN counts packets dropped because of ECNDrop, before the queue.
	DroppedECN uint64
	// DroppedQueue counts packets dropped by the queue.
	DroppedQueue uint64
	// Marked counts packets marked by the queue with CongestionExperienced, including those lost on the wire
	// afterwards.
	Marked uint64
	// LostRandom and LostBurst count losses on the wire, by cause. A packet lost by both counts as LostRandom.
	LostRandom, LostBurst uint64
	// Duplicated counts copies made.
	Duplicated uint64
	// Reordered counts packets that arrived after one that was sent later (type-P-reordered of RFC 4737), for any
	// cause; copies are not counted.
	Reordered uint64
}

// NewLink returns a link with the given parameters, whose random decisions depend only on seed. If queue is nil, the
// link has the queue described by cfg; otherwise discipline and limits in cfg have no effect. The error wraps
// ErrConfig.
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

// newQueue returns the queue for a bottleneck of the given rate.
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

// queueLimit returns the smaller of the two limits, in bytes. At an unlimited rate no packet waits, except for a packet
// accepted before the rate became unlimited.
func (c *Config) queueLimit(rateBPS int) int {
	if rateBPS == 0 {
		return math.MaxInt
	}
	limit := uint64(c.QueueBytes)
	if c.QueueDelay > 0 {
		// rate [bit/s] × delay [ns] / 8e9 = bytes. The product may exceed 64 bits; the quotient cannot, with a rate of
		// at most 1e12 and a delay of at most 6e10.
		hi, lo := bits.Mul64(uint64(rateBPS), uint64(c.QueueDelay))
		inTime, _ := bits.Div64(hi, lo, 8e9)
		if limit == 0 || inTime < limit {
			limit = inTime
		}
	}
	return int(limit)
}

// Reconfigure changes the parameters from now on, and ends a trace. Packets transmitted by now, or in transmission,
// keep their arrival time. Waiting packets are transmitted at the new rate, with their original losses and delays.
// Random streams continue. The link's own queue gets the new limit, and keeps its packets even beyond the limit; if the
// discipline changes, the packets move to a new queue. The error wraps ErrConfig.
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

// SetRate makes the rate follow a trace, which begins now, instead of Config.RateBPS. If the rate changes while a
// packet is transmitted, each part has its own rate. A packet in transmission now keeps its arrival time. A queue limit
// in time uses the mean rate of the trace. The caller must not change the trace afterwards. The error wraps ErrTrace,
// or ErrConfig if the link's parameters limit the queue neither in bytes nor in time.
func (l *Link) SetRate(trace RateTrace, now time.Time) error {
	if err := l.checkRate(&trace); err != nil {
		return err
	}
	l.advance(now)
	l.adjustQueue(&l.config, max(trace.Mean(), 1))
	l.transmitter.follow(&trace, l.now)
	return nil
}

// Impair changes all parameters except the rate from now on, as Reconfigure does; a trace continues. The error wraps
// ErrConfig.
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

// errUnlimitedQueue returns the error of a queue without limit at a rate that follows a trace.
func errUnlimitedQueue() error {
	return fmt.Errorf("%w: queue_bytes and queue_delay are 0, expected a limit because the rate follows a trace",
		ErrConfig)
}

// checkRate returns the error of SetRate.
func (l *Link) checkRate(trace *RateTrace) error {
	if l.ownQueue && l.config.QueueBytes == 0 && l.config.QueueDelay == 0 {
		return errUnlimitedQueue()
	}
	return trace.Validate()
}

// adjustQueue changes the queue to that described by cfg for a bottleneck of the given rate, unless the caller of
// NewLink passed the queue.
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

// ClassStats returns the counters of the two queues of DualPI2. ok is false if the queue is of another kind.
func (l *Link) ClassStats() (l4s, classic ClassStats, ok bool) {
	if q, is := l.queue.(*DualPI2); is {
		l4s, classic = q.ClassStats()
		return l4s, classic, true
	}
	return l4s, classic, false
}

// ResetStats sets the counters to 0. Packets in transit then still count as delivered or lost later.
func (l *Link) ResetStats() {
	l.stats = Stats{}
	if q, ok := l.queue.(*DualPI2); ok {
		q.resetStats()
	}
}

// Busy reports whether a packet offered now would wait for others.
func (l *Link) Busy(now time.Time) bool {
	l.advance(now)
	return l.queue.Len() > 0 || l.transmitter.idleAt.After(l.now)
}

// Waiting returns the number of packets in the queue, as of the last call of Send or Deliver.
func (l *Link) Waiting() int { return l.queue.Len() }

// Send offers a packet and passes its ownership to the link.
func (l *Link) Send(p *Packet, now time.Time) {
	l.advance(now)
	l.stats.Sent++
	l.stats.SentBytes += uint64(p.Size)
	l.offered++
	p.order, p.copy, p.fate = l.offered, false, l.impairments.next(&l.config)
	if !l.treatECN(p) {
		l.stats.DroppedECN++
		p.discard()
		return
	}
	p.offered = p.ECN
	if l.queue.Len() == 0 {
		l.transmitter.rest(l.now)
	}
	p.queued = l.now
	l.stats.DroppedQueue += uint64(l.queue.Enqueue(p, l.now))
	l.transmit()
}

// treatECN applies the treatment of the ECN field, and returns false if the packet is to be dropped.
func (l *Link) treatECN(p *Packet) (pass bool) {
	if p.ECN == ecn.NotECT {
		return true
	}
	switch l.config.ECN {
	case ECNClear:
		p.ECN = ecn.NotECT
	case ECNECT0:
		if p.ECN == ecn.ECT1 {
			p.ECN = ecn.ECT0
		}
	case ECNMark:
		p.ECN = ecn.CE
	case ECNDrop:
		return false
	}
	return true
}

// Next returns the time of the next Deliver: no packet arrives earlier, but there may be none at that time either. It
// is zero if no packet is waiting or on the wire.
func (l *Link) Next() time.Time {
	var next time.Time
	if len(l.flight) > 0 {
		next = l.flight[0].Arrival
	}
	if l.queue.Len() > 0 {
		// Waiting packets are not transmitted before the transmitter is idle.
		if earliest := l.transmitter.idleAt.Add(l.config.leastDelay()); next.IsZero() || earliest.Before(next) {
			next = earliest
		}
	}
	return next
}

// Deliver returns the packets that have arrived by now, in the order of arrival. The slice is valid until the next
// call; the packets belong to the caller.
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

// advance processes all events up to now.
func (l *Link) advance(now time.Time) {
	if now.After(l.now) {
		l.now = now
	}
	l.transmit()
}

// transmit moves packets from the queue to the wire as long as the transmitter is idle by now.
func (l *Link) transmit() {
	for l.queue.Len() > 0 && l.transmitter.ready(l.now) {
		p, dropped := l.queue.Dequeue(l.transmitter.idleAt)
		l.stats.DroppedQueue += uint64(dropped)
		if p == nil {
			return
		}
		p.Waited = l.transmitter.idleAt.Sub(p.queued)
		if p.ECN == ecn.CE && p.offered != ecn.CE {
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

// arrival returns the arrival time of a packet that has just been transmitted, with a delay. Unless jitter may reorder,
// it is not before the arrival of earlier packets. Held-back packets and copies do not delay others.
func (l *Link) arrival(delay time.Duration) time.Time {
	at := l.transmitter.idleAt.Add(delay)
	if !l.config.JitterReorders && at.Before(l.inOrder) {
		return l.inOrder
	}
	return at
}
