package netem

import "time"

// fairQuantum is the number of bytes that a flow may send in its turn: a full Ethernet frame (RFC 8290, section 5.2).
const fairQuantum = 1514

// FairQueue is a Queue with a separate queue for each flow (Packet.Flow). The flows are served in turn, each with the
// same bytes per round: deficit round robin, in the form of RFC 8290, in which a flow without recent packets is served
// once before the others. Beyond the limit it drops from the head of the flow with the most bytes, so that a flow
// cannot use the space of another.
type FairQueue struct {
	limit          int
	codel          bool // CoDel is applied to each flow
	bytes, packets int
	flows          map[uint64]*flowQueue // flows on one of the lists
	fresh, old     flowList
	unused         []*flowQueue
}

// flowQueue holds the packets of one flow.
type flowQueue struct {
	flow    uint64
	packets packetList
	credit  int // bytes that it may send in this round
	law     controlLaw
	next    *flowQueue // on its list
}

// NewFairQueue returns a queue for at most limitBytes bytes of all flows. An empty queue accepts one packet of any
// size.
func NewFairQueue(limitBytes int) *FairQueue {
	return &FairQueue{limit: limitBytes, flows: make(map[uint64]*flowQueue)}
}

// NewFQCoDel is NewFairQueue with CoDel for every flow: FQ-CoDel of RFC 8290, with as many queues as flows.
func NewFQCoDel(limitBytes int) *FairQueue {
	q := NewFairQueue(limitBytes)
	q.codel = true
	return q
}

// Enqueue adds p, and drops packets of the longest flow beyond the limit, possibly p.
func (q *FairQueue) Enqueue(p *Packet, now time.Time) (dropped int) {
	p.queued = now
	f := q.flows[p.Flow]
	if f == nil {
		f = q.open(p.Flow)
	}
	f.packets.push(p)
	q.bytes += p.Size
	q.packets++
	for q.bytes > q.limit && q.packets > 1 {
		head := q.longest().packets.pop()
		q.bytes -= head.Size
		head.discard()
		q.packets--
		dropped++
	}
	return dropped
}

// open adds a flow to those served.
func (q *FairQueue) open(flow uint64) *flowQueue {
	var f *flowQueue
	if last := len(q.unused) - 1; last >= 0 {
		f, q.unused = q.unused[last], q.unused[:last]
	} else {
		f = new(flowQueue)
	}
	*f = flowQueue{flow: flow, packets: f.packets, credit: fairQuantum}
	q.flows[flow] = f
	q.fresh.push(f)
	return f
}

// longest returns the flow with the most bytes, and of equal ones the flow served first.
func (q *FairQueue) longest() *flowQueue {
	var longest *flowQueue
	for _, list := range []*flowList{&q.fresh, &q.old} {
		for f := list.head; f != nil; f = f.next {
			if longest == nil || f.packets.bytes > longest.packets.bytes {
				longest = f
			}
		}
	}
	return longest
}

// Dequeue returns the next packet of the flow whose turn it is, after the drops of CoDel.
func (q *FairQueue) Dequeue(now time.Time) (p *Packet, dropped int) {
	for {
		list := &q.fresh
		if list.head == nil {
			list = &q.old
		}
		f := list.head
		if f == nil {
			return nil, dropped
		}
		if f.credit <= 0 {
			f.credit += fairQuantum
			q.old.push(list.pop())
			continue
		}
		var lost int
		p, lost = q.take(f, now)
		dropped += lost
		switch {
		case p != nil:
			f.credit -= p.Size
			return p, dropped
		case list == &q.fresh:
			// The flow stays on the list for a round. Otherwise a flow that sends a packet now and then would always be
			// first (RFC 8290, section 4.2).
			q.old.push(list.pop())
		default:
			delete(q.flows, f.flow)
			q.unused = append(q.unused, list.pop())
		}
	}
}

// take returns the next packet of a flow, nil if there is none.
func (q *FairQueue) take(f *flowQueue, now time.Time) (p *Packet, dropped int) {
	packets, bytes := f.packets.len(), f.packets.bytes
	if q.codel {
		p, dropped = f.law.dequeue(&f.packets, now)
	} else {
		p = f.packets.pop()
	}
	q.packets -= packets - f.packets.len()
	q.bytes -= bytes - f.packets.bytes
	return p, dropped
}

// Len returns the number of packets waiting.
func (q *FairQueue) Len() int { return q.packets }

func (q *FairQueue) setLimit(bytes int) { q.limit = bytes }

// flowList is a first-in, first-out list of flows.
type flowList struct{ head, tail *flowQueue }

func (l *flowList) push(f *flowQueue) {
	f.next = nil
	if l.head == nil {
		l.head = f
	} else {
		l.tail.next = f
	}
	l.tail = f
}

func (l *flowList) pop() *flowQueue {
	f := l.head
	l.head = f.next
	f.next = nil
	return f
}
