package feedback

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/volsfu/volsfu/test/race"
)

// lossyPath is a publisher, a server and a watcher in virtual time, with loss in each direction of both hops. Server
// and watcher repair independently; the server forwards received packets at once, in any order. The lossy hop i leads
// to node i+1.
type lossyPath struct {
	random  *rand.Rand
	loss    float64
	burst   float64 // mean number of consecutive lost packets, 0 for independent losses
	oneWay  time.Duration
	events  eventQueue
	order   int
	nodes   [3]pathNode
	resent  int
	dropped int // lost packets, without requests
	bad     [4]bool
}

type pathNode struct {
	g      *NACKGenerator
	has    map[int64]time.Time
	wakeup time.Time
}

type pathEvent struct {
	at    time.Time
	order int
	run   func(now time.Time)
}

type eventQueue []pathEvent

func (q eventQueue) Len() int      { return len(q) }
func (q eventQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *eventQueue) Push(e any)   { *q = append(*q, e.(pathEvent)) }
func (q eventQueue) Less(i, j int) bool {
	return q[i].at.Before(q[j].at) || q[i].at.Equal(q[j].at) && q[i].order < q[j].order
}
func (q *eventQueue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

func (p *lossyPath) schedule(at time.Time, run func(now time.Time)) {
	p.order++
	heap.Push(&p.events, pathEvent{at: at, order: p.order, run: run})
}

// lost decides whether a packet is lost on one of the four directions: independently, or by a chain of two states
// (Gilbert).
func (p *lossyPath) lost(direction int) bool {
	if p.burst == 0 {
		return p.random.Float64() < p.loss
	}
	if p.bad[direction] {
		p.bad[direction] = p.random.Float64() >= 1/p.burst
	} else {
		p.bad[direction] = p.random.Float64() < p.loss/(1-p.loss)/p.burst
	}
	return p.bad[direction]
}

// send sends a packet from node to the next one.
func (p *lossyPath) send(node int, sequence, last int64, now time.Time) {
	if p.lost(node) {
		p.dropped++
		return
	}
	p.schedule(now.Add(p.oneWay), func(now time.Time) { p.receive(node+1, sequence, last, now) })
}

func (p *lossyPath) receive(node int, sequence, last int64, now time.Time) {
	n := &p.nodes[node]
	n.g.Received(sequence, now)
	n.g.Expect(last, now)
	if _, again := n.has[sequence]; !again {
		n.has[sequence] = now
		if node == 1 {
			p.send(1, sequence, last, now)
		}
	}
	p.wake(node, now)
}

// wake steps a node's generator when it is due.
func (p *lossyPath) wake(node int, now time.Time) {
	n := &p.nodes[node]
	next := n.g.Next()
	if next.IsZero() || n.wakeup.After(now) && !next.Before(n.wakeup) {
		return
	}
	n.wakeup = next
	if next.Before(now) {
		n.wakeup = now
	}
	p.schedule(n.wakeup, func(now time.Time) {
		if !n.wakeup.Equal(now) {
			return // already stepped
		}
		ask, _ := n.g.Due(now, 2*p.oneWay, nil, nil)
		if len(ask) > 0 && !p.lost(node+1) {
			p.schedule(now.Add(p.oneWay), func(now time.Time) { p.repeat(node-1, ask, now) })
		}
		n.wakeup = time.Time{}
		p.wake(node, now)
	})
}

// repeat answers a request with the packets that the node has. A packet that the node just received may still be in
// transit.
func (p *lossyPath) repeat(node int, ask []int64, now time.Time) {
	for _, sequence := range ask {
		if at, has := p.nodes[node].has[sequence]; node == 0 || has && Answerable(at, now, 2*p.oneWay) {
			p.resent++
			p.send(node, sequence, sequence/pathPackets*pathPackets+pathPackets-1, now)
		}
	}
}

// pathPackets is the number of packets of a frame of 150 kB.
const pathPackets = 131

// run sends frames at 30 per second, each over 13 ms, and returns the share of frames that the watcher has within the
// deadline after their first packet.
func (p *lossyPath) run(frames int, deadline time.Duration) float64 {
	for i := range p.nodes {
		p.nodes[i] = pathNode{g: NewNACKGenerator(DefaultConfig().NACK), has: map[int64]time.Time{}}
	}
	for frame := range int64(frames) {
		begin := start.Add(time.Duration(frame) * time.Second / 30)
		for i := range int64(pathPackets) {
			sequence := frame*pathPackets + i
			p.schedule(begin.Add(time.Duration(i)*100*time.Microsecond), func(now time.Time) {
				p.send(0, sequence, frame*pathPackets+pathPackets-1, now)
			})
		}
	}
	for len(p.events) > 0 {
		event := heap.Pop(&p.events).(pathEvent)
		event.run(event.at)
	}
	complete := 0
	for frame := range int64(frames) {
		var first, last time.Time
		count := 0
		for i := range int64(pathPackets) {
			at, has := p.nodes[2].has[frame*pathPackets+i]
			if !has {
				continue
			}
			if count++; first.IsZero() || at.Before(first) {
				first = at
			}
			if at.After(last) {
				last = at
			}
		}
		if count == pathPackets && last.Sub(first) <= deadline {
			complete++
		}
	}
	return float64(complete) / float64(frames)
}

// TestNACKPath checks the results of the arithmetic of NACKGenerator.
func TestNACKPath(t *testing.T) {
	race.SkipSequential(t)
	// 52,400 packets on each hop.
	const frames = 400
	tests := []struct {
		loss, burst float64
		rtt         time.Duration
		complete    float64 // share of frames
		overhead    float64 // retransmissions per packet lost
	}{
		{0.01, 0, 20 * time.Millisecond, 0.999, 1.05},
		{0.05, 0, 20 * time.Millisecond, 0.999, 1.15},
		{0.05, 5, 20 * time.Millisecond, 0.995, 1.2},
		{0.05, 0, 50 * time.Millisecond, 0.96, 1.3},
		{0.05, 0, 2 * time.Millisecond, 0.999, 1.1},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%v loss, bursts of %v, %v", test.loss, test.burst, test.rtt), func(t *testing.T) {
			p := &lossyPath{random: rand.New(rand.NewPCG(7, 8)), loss: test.loss, burst: test.burst,
				oneWay: test.rtt / 2}
			complete := p.run(frames, 150*time.Millisecond)
			overhead := float64(p.resent) / float64(p.dropped)
			t.Logf("%.4f of frames complete, %.3f retransmissions per packet lost, %.4f of packets lost",
				complete, overhead,
				float64(p.dropped)/float64(2*frames*pathPackets+p.resent))
			if complete < test.complete || overhead > test.overhead {
				t.Errorf("%.4f of frames complete, expected %v; %.3f retransmissions per lost packet, "+
					"expected at most %v", complete,
					test.complete, overhead, test.overhead)
			}
		})
	}
}
