package control

import (
	"time"

	"github.com/volsfu/volsfu/internal/netem"
)

// epoch is when virtual time begins.
var epoch = time.Unix(1_795_188_600, 0)

func at(now time.Duration) time.Time { return epoch.Add(now) }

// watchedQueue tells what each packet has waited in a queue, and what becomes of each flow's. The packets of one flow leave the queue in their order.
type watchedQueue struct {
	netem.Queue
	flows map[uint64]*watchedFlow
}

// watchedFlow are the packets of a flow at a queue.
type watchedFlow struct {
	waiting              []waitingPacket // and those discarded since the last one left
	offered, transmitted uint64
	discarded            uint64                    // counted when one behind them leaves
	waited               func(delay time.Duration) // is told what each packet has waited
}

type waitingPacket struct {
	packet *netem.Packet
	since  time.Time
}

func newWatchedQueue(q netem.Queue) *watchedQueue {
	return &watchedQueue{Queue: q, flows: make(map[uint64]*watchedFlow)}
}

// watch begins to watch a flow.
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
