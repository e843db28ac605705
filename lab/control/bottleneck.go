package control

import (
	"time"

	"github.com/volsfu/volsfu/internal/netem"
)

// epoch is the start of virtual time.
var epoch = time.Unix(1_795_188_600, 0)

func at(now time.Duration) time.Time { return epoch.Add(now) }

// watchedQueue measures the waiting time of each packet in a queue and counts each flow's packets. The packets of one
// flow leave the queue in order.
type watchedQueue struct {
	netem.Queue
	flows map[uint64]*watchedFlow
}

// watchedFlow holds the packets of one flow at a queue.
type watchedFlow struct {
	waiting              []waitingPacket // includes packets discarded since the last departure
	offered, transmitted uint64
	discarded            uint64                    // counted when a later packet leaves
	waited               func(delay time.Duration) // called with the waiting time of each packet
}

type waitingPacket struct {
	packet *netem.Packet
	since  time.Time
}

func newWatchedQueue(q netem.Queue) *watchedQueue {
	return &watchedQueue{Queue: q, flows: make(map[uint64]*watchedFlow)}
}

// watch starts watching a flow.
func (q *watchedQueue) watch(flow uint64, waited func(delay time.Duration)) *watchedFlow {
	f := &watchedFlow{waited: waited}
	q.flows[flow] = f
	return f
}

// Enqueue implements netem.Queue.
func (q *watchedQueue) Enqueue(p *netem.Packet, now time.Time) int {
	f := q.flows[p.Flow]
	f.offered++
	f.waiting = append(f.waiting, waitingPacket{p, now})
	return q.Queue.Enqueue(p, now)
}

// Dequeue implements netem.Queue.
func (q *watchedQueue) Dequeue(now time.Time) (*netem.Packet, int) {
	p, dropped := q.Queue.Dequeue(now)
	if p == nil {
		return nil, dropped
	}
	f := q.flows[p.Flow]
	for i := range f.waiting {
		w := &f.waiting[i]
		if w.packet != p {
			f.discarded++
			continue
		}
		f.waited(now.Sub(w.since))
		f.waiting = f.waiting[i+1:]
		break
	}
	f.transmitted++
	return p, dropped
}
