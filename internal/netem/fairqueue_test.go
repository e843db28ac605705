package netem_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
)

// fill enqueues packets of the given flows at the same time and returns how many were dropped.
func fill(q netem.Queue, size int, flows ...uint64) (dropped int) {
	for _, flow := range flows {
		dropped += q.Enqueue(&netem.Packet{Flow: flow, Size: size}, epoch)
	}
	return dropped
}

// empty dequeues everything and returns the flows in the order in which they were served.
func empty(q netem.Queue, now time.Time) (flows []uint64) {
	for q.Len() > 0 {
		if p, _ := q.Dequeue(now); p != nil {
			flows = append(flows, p.Flow)
		}
	}
	return flows
}

func TestFairQueueServesFlowsInTurn(t *testing.T) {
	tests := []struct {
		name           string
		size           int
		flows, expects []uint64
	}{
		{"one packet per turn", 1514, []uint64{1, 1, 1, 1, 2, 2, 3}, []uint64{1, 2, 3, 1, 2, 1, 1}},
		// A quantum of 1,514 bytes permits the third packet of 700, too, and its excess of 586 counts in the next turn.
		{"small packets", 700, []uint64{1, 1, 1, 1, 1, 1, 2, 2, 2, 2}, []uint64{1, 1, 1, 2, 2, 2, 1, 1, 2, 1}},
		// A packet of 4,000 bytes takes three turns.
		{"one flow", 4000, []uint64{1, 1, 1}, []uint64{1, 1, 1}},
	}
	for _, test := range tests {
		q := netem.NewFairQueue(1 << 20)
		fill(q, test.size, test.flows...)
		if got := empty(q, epoch); !slices.Equal(got, test.expects) {
			t.Errorf("%s: served %v, expected %v", test.name, got, test.expects)
		}
	}
	// Sizes differ: a flow of large packets gets as many bytes as one of small packets.
	q := netem.NewFairQueue(1 << 20)
	for range 100 {
		fill(q, 1500, 1)
		fill(q, 300, 2, 2, 2, 2, 2)
	}
	var bytes [3]int
	for range 300 {
		p, _ := q.Dequeue(epoch)
		bytes[p.Flow] += p.Size
	}
	if difference := bytes[1] - bytes[2]; difference < -2*1514 || difference > 2*1514 {
		t.Errorf("%d bytes of large and %d of small packets, expected a difference of two turns at most",
			bytes[1], bytes[2])
	}
}

func TestFairQueueServesANewFlowFirst(t *testing.T) {
	q := netem.NewFairQueue(1 << 20)
	fill(q, 1514, 1, 1, 1, 1, 2, 2, 2, 2)
	for range 4 {
		q.Dequeue(epoch)
	}
	// It is the turn of flow 1. Flow 3 is new, so its first turn is next. After that it is behind flow 1, and another
	// packet of flow 3 does not change this.
	fill(q, 1514, 3)
	p, _ := q.Dequeue(epoch)
	first := p.Flow
	fill(q, 1514, 3)
	if got := append([]uint64{first}, empty(q, epoch)...); !slices.Equal(got, []uint64{3, 1, 3, 2, 1, 2}) {
		t.Errorf("served %v, expected 3 first and then in turn", got)
	}
}

func TestFairQueueDropsFromTheLongestFlow(t *testing.T) {
	q := netem.NewFairQueue(6000)
	if dropped := fill(q, 1000, 1, 1, 1, 1, 1, 1); dropped != 0 {
		t.Fatalf("%d dropped although they fit", dropped)
	}
	if dropped := fill(q, 1000, 2, 2, 2); dropped != 3 {
		t.Errorf("%d dropped for three packets, expected 3", dropped)
	}
	// Both have three packets now. One more of flow 2 makes flow 2 the longest.
	if dropped := fill(q, 1000, 2); dropped != 1 {
		t.Errorf("%d dropped, expected 1", dropped)
	}
	if got := empty(q, epoch); !slices.Equal(got, []uint64{1, 1, 2, 2, 1, 2}) {
		t.Errorf("served %v, expected three of each flow", got)
	}
	q = netem.NewFairQueue(1)
	if dropped := fill(q, 1000, 1); dropped != 0 || q.Len() != 1 {
		t.Errorf("an empty queue dropped %d packets", dropped)
	}
	if dropped := fill(q, 100, 2); dropped != 1 || q.Len() != 1 {
		t.Errorf("%d dropped and %d waiting, expected 1 and 1", dropped, q.Len())
	}
	if p, _ := q.Dequeue(epoch); p == nil || p.Flow != 2 {
		t.Errorf("%+v is left, expected the shorter packet", p)
	}
}

// TestFairQueueIsFair sends 20 Mbit/s of flow 1 and 12 Mbit/s of flow 2 through 10 Mbit/s, and now and then a packet of
// flow 3.
func TestFairQueueIsFair(t *testing.T) {
	for _, discipline := range []string{netem.QueueFQ, netem.QueueFQCoDel} {
		link := newLink(t, with(func(c *netem.Config) {
			c.RateBPS, c.Queue, c.QueueDelay = 10_000_000, discipline,
				100*time.Millisecond
		}), 1)
		var bytes [4]float64
		var longest time.Duration
		sent := 0
		// A packet of 1,000 bytes takes 0.8 ms.
		for i := range 50_000 {
			now := at(time.Duration(i) * 200 * time.Microsecond)
			if i%2 == 0 {
				link.Send(&netem.Packet{Flow: 1, Size: 1000}, now)
			}
			if i%10 < 3 {
				link.Send(&netem.Packet{Flow: 2, Size: 1000}, now)
			}
			if i%500 == 499 {
				sent++
				link.Send(&netem.Packet{Flow: 3, Size: 200}, now)
			}
			for _, p := range link.Deliver(now) {
				bytes[p.Flow] += float64(p.Size)
				if p.Flow == 3 {
					longest = max(longest, p.Waited)
				}
			}
		}
		for _, p := range link.Deliver(at(time.Minute)) {
			if p.Flow == 3 {
				bytes[3] += float64(p.Size)
			}
		}
		if ratio := bytes[1] / bytes[2]; math.Abs(ratio-1) > 0.02 {
			t.Errorf("%s: flow 1 got %.3f of flow 2's rate, expected the same within 2 %%", discipline, ratio)
		}
		// A sparse flow waits only for the packet in transmission.
		if bytes[3] != float64(sent*200) || longest > 800*time.Microsecond {
			t.Errorf("%s: %g of %d bytes of the sparse flow arrived, after waiting up to %v; "+
				"expected all within 800 µs", discipline, bytes[3], sent*200, longest)
		}
		checkConservation(t, link.Stats())
	}
}

func TestQueuesDoNotAllocate(t *testing.T) {
	for name, q := range map[string]netem.Queue{
		"codel": netem.NewCoDel(1 << 20), "fq": netem.NewFairQueue(1 << 20), "fq_codel": netem.NewFQCoDel(1 << 20),
	} {
		var packets [40]netem.Packet
		now := epoch
		round := func() {
			for i := range packets {
				packets[i] = netem.Packet{Flow: uint64(i % 8), Size: 1000}
				q.Enqueue(&packets[i], now)
			}
			now = now.Add(time.Second)
			for q.Len() > 0 {
				q.Dequeue(now)
			}
			now = now.Add(time.Second)
		}
		if allocations := testing.AllocsPerRun(100, round); allocations != 0 {
			t.Errorf("%s: %g allocations per 40 packets in steady state, expected none", name, allocations)
		}
	}
}
