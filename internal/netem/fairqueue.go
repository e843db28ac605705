package netem

import "time"

// fairQuantum is how many bytes a flow may send in its turn: a full Ethernet frame (RFC 8290, section 5.2).
const fairQuantum = 1514

// FairQueue is a Queue that gives each flow (Packet.Flow) a queue of its own and serves them in turn, each with the same bytes per round: deficit round robin, in the
// form of RFC 8290, where a flow that has sent nothing lately is served before the others once. Beyond the limit it drops from the head of the flow with the most bytes, so
// that a flow cannot take another's room.
type FairQueue struct {
	limit          int
	codel          bool // each flow is under CoDel
	bytes, packets int
	flows          map[uint64]*flowQueue // those on one of the lists
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

// NewFairQueue returns a queue for at most limitBytes bytes of all flows. An empty queue takes one packet of any size.
func NewFairQueue(limitBytes int) *FairQueue {
	return &FairQueue{limit: limitBytes, flows: make(map[uint64]*flowQueue)}
}

// NewFQCoDel is NewFairQueue with every flow under CoDel: FQ-CoDel of RFC 8290, with as many queues as flows.
func NewFQCoDel(limitBytes int) *FairQueue {
	q := NewFairQueue(limitBytes)
	q.codel = true
	return q
}

// Enqueue takes p, and drops for it from the longest flow what exceeds the limit, perhaps p.
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

// open makes a flow one of those served.
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

// longest is the flow with the most bytes, of equals the one served first.
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

// Dequeue gives the next packet of the flow whose turn it is, after those that CoDel drops.
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
			// It stays on the list for a round, or by sending a packet now and then it would always come first (RFC 8290, section 4.2).
			q.old.push(list.pop())
		default:
			delete(q.flows, f.flow)
			q.unused = append(q.unused, list.pop())
		}
	}
}

// take gives the next packet of a flow, nil if there is none.
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

// Len is the number of packets waiting.
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
