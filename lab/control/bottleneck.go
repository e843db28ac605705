package control

import (
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/lab"
)

// epoch is the start of virtual time.
var epoch = time.Unix(1_795_188_600, 0)

func at(now time.Duration) time.Time { return epoch.Add(now) }

// class is the class of a packet at a queue that serves L4S packets first (RFC 9331 section 5.1).
type class int

const (
	// classic packets are Not-ECT or ECT(0).
	classic class = iota
	// lowLatency packets were offered as ECT(1) or CE.
	lowLatency
	classes
)

// classOf returns the class of a packet, from the codepoint with which the packet was offered to the link.
func classOf(p *netem.Packet) class {
	if p.Offered().L4S() {
		return lowLatency
	}
	return classic
}

// watchedQueue measures the waiting time of each packet in a queue, and counts packets by flow and by class. The
// packets of one flow and class leave the queue in order.
type watchedQueue struct {
	netem.Queue
	flows   map[uint64]*watchedFlow
	packets func(PacketFate) // nil without a log
	classes [classes]watchedClass
}

// watchedFlow holds the packets of one flow at a queue.
type watchedFlow struct {
	waiting              [classes][]waitingPacket // includes packets discarded since the last departure
	offered, transmitted uint64
	discarded            uint64 // counted when a later packet of the same class leaves
	// waited is called with the waiting time of each packet and the time at which the packet leaves the queue.
	waited func(delay, now time.Duration)
}

// watchedClass holds the packets of one class at a queue, those of all flows. marked counts transmitted packets that
// the queue marked; discarded is as in watchedFlow.
type watchedClass struct {
	transmitted, capable, marked, discarded uint64
	waited                                  lab.Distribution
}

type waitingPacket struct {
	packet *netem.Packet
	since  time.Time
}

func newWatchedQueue(q netem.Queue) *watchedQueue {
	return &watchedQueue{Queue: q, flows: make(map[uint64]*watchedFlow)}
}

// watch starts watching a flow.
func (q *watchedQueue) watch(flow uint64, waited func(delay, now time.Duration)) *watchedFlow {
	f := &watchedFlow{waited: waited}
	q.flows[flow] = f
	return f
}

// Enqueue implements netem.Queue.
func (q *watchedQueue) Enqueue(p *netem.Packet, now time.Time) int {
	f, c := q.flows[p.Flow], classOf(p)
	f.offered++
	f.waiting[c] = append(f.waiting[c], waitingPacket{p, now})
	return q.Queue.Enqueue(p, now)
}

// Dequeue implements netem.Queue.
func (q *watchedQueue) Dequeue(now time.Time) (*netem.Packet, int) {
	p, dropped := q.Queue.Dequeue(now)
	if p == nil {
		return nil, dropped
	}
	f, c := q.flows[p.Flow], classOf(p)
	waiting, total := f.waiting[c], &q.classes[c]
	for i := range waiting {
		w := &waiting[i]
		if w.packet != p {
			f.discarded++
			total.discarded++
			q.log(w, 0, true)
			continue
		}
		delay := now.Sub(w.since)
		f.waited(delay, now.Sub(epoch))
		total.waited.Add(delay)
		q.log(w, delay, false)
		f.waiting[c] = waiting[i+1:]
		break
	}
	f.transmitted++
	total.count(p)
	return p, dropped
}

// log reports the fate of a packet.
func (q *watchedQueue) log(w *waitingPacket, waited time.Duration, dropped bool) {
	if q.packets != nil {
		q.packets(PacketFate{Flow: w.packet.Flow, Size: w.packet.Size, Arrived: w.since.Sub(epoch), Waited: waited,
			Dropped: dropped})
	}
}

// count counts a transmitted packet.
func (c *watchedClass) count(p *netem.Packet) {
	c.transmitted++
	if p.Offered() != ecn.NotECT {
		c.capable++
	}
	if p.ECN == ecn.CE && p.Offered() != ecn.CE {
		c.marked++
	}
}

// add adds the packets of the same class at another queue.
func (c *watchedClass) add(other *watchedClass) {
	c.transmitted += other.transmitted
	c.capable += other.capable
	c.marked += other.marked
	c.discarded += other.discarded
	c.waited.Join(&other.waited)
}

// figures returns the figures of a class, or nil if no packet of the class was transmitted.
func (c *watchedClass) figures() *ClassFigures {
	if c.transmitted == 0 {
		return nil
	}
	ms := func(share float64) float64 { return lab.Milliseconds(c.waited.Percentile(share)) }
	return &ClassFigures{Packets: c.transmitted, Marked: c.marked, Dropped: c.discarded, P50: ms(0.5), P99: ms(0.99),
		Max: ms(1)}
}

// separates reports whether the queue separates the classes.
func (q *watchedQueue) separates() bool {
	switch q.Queue.(type) {
	case *netem.DualPI2, *netem.L4SPriority:
		return true
	}
	return false
}

// classFigures returns the figures of the two classes at all bottlenecks, or nil if the queues do not separate the
// classes and no packet was ECN-capable.
func classFigures(hops []*hop) (l4s, other *ClassFigures) {
	var sum [classes]watchedClass
	for _, h := range hops {
		for c := range sum {
			sum[c].add(&h.queue.classes[c])
		}
	}
	if !hops[0].queue.separates() && sum[lowLatency].capable+sum[classic].capable == 0 {
		return nil, nil
	}
	return sum[lowLatency].figures(), sum[classic].figures()
}
