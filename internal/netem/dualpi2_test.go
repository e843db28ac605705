package netem_test

import (
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/test/race"
)

const us = time.Microsecond

// served counts the packets of one kind by their result.
type served struct{ sent, marked, dropped int }

// TestDualPI2Ramp lets every L4S packet wait 900 µs: a quarter of the way from 800 to 1,200 µs, so that one in four is
// marked. The counter exceeds 1 for the first time at the fifth.
func TestDualPI2Ramp(t *testing.T) {
	for _, codepoint := range []ecn.Codepoint{ecn.ECT1, ecn.CE} {
		q := netem.NewDualPI2(1 << 20)
		var marks []int
		for i := range 36 {
			now := at(time.Duration(i) * 300 * us)
			q.Enqueue(&netem.Packet{Size: 1200, ECN: codepoint, Number: uint64(i + 1)}, now)
			if i < 3 {
				continue
			}
			if p, _ := q.Dequeue(now); p.ECN == ecn.CE && codepoint == ecn.ECT1 {
				marks = append(marks, int(p.Number))
			}
		}
		expected := []int{5, 9, 13, 17, 21, 25, 29, 33}
		if codepoint == ecn.CE {
			expected = nil
		}
		if !slices.Equal(marks, expected) {
			t.Errorf("%v: marked %v, expected %v", codepoint, marks, expected)
		}
	}
}

// TestDualPI2SparesSinglePackets lets L4S packets wait 5 ms each, but alone.
func TestDualPI2SparesSinglePackets(t *testing.T) {
	q := netem.NewDualPI2(1 << 20)
	for i := range 2 {
		now := at(time.Duration(i) * 5 * time.Millisecond)
		q.Enqueue(&netem.Packet{Size: 1200, ECN: ecn.ECT1}, now)
		if p, dropped := q.Dequeue(now.Add(5 * time.Millisecond)); p == nil || p.ECN != ecn.ECT1 || dropped != 0 {
			t.Errorf("%+v and %d dropped, expected the packet as it was", p, dropped)
		}
	}
}

// backlog is a queue whose first packet has waited since the epoch, after the given number of controller steps of 15
// ms.
func backlog(steps int, count int, codepoint ecn.Codepoint) (*netem.DualPI2, time.Time) {
	q := netem.NewDualPI2(1 << 30)
	for range count {
		q.Enqueue(&netem.Packet{Size: 1200, ECN: codepoint}, epoch)
	}
	return q, at(time.Duration(steps)*15*time.Millisecond + time.Millisecond)
}

// TestDualPI2Controller compares shares of marks and drops with the controller's arithmetic. With gains of 0.15 and 3
// Hz and a delay that is 15, 30, 45 … ms at its steps, the base share is 0.045, then 0.045 + 0.00225 more = 0.09225,
// then 0.04950 more = 0.14175, and after ten steps 0.55125.
func TestDualPI2Controller(t *testing.T) {
	for _, test := range []struct {
		name     string
		steps    int
		ecn      ecn.Codepoint
		expected served // of 1,000 packets
	}{
		// 0.14175² = 0.020093.
		{"classic", 3, ecn.NotECT, served{980, 0, 20}},
		{"classic with ECN", 3, ecn.ECT0, served{1000, 20, 0}},
		// 0.55125² = 0.303877 is more than a quarter, beyond which ECN is given up.
		{"classic overload", 10, ecn.NotECT, served{697, 0, 303}},
		{"classic overload with ECN", 10, ecn.ECT0, served{697, 0, 303}},
		// Twice 0.55125 is more than 1: every packet that is not dropped is marked.
		{"L4S overload", 10, ecn.ECT1, served{697, 697, 303}},
	} {
		q, now := backlog(test.steps, 1000, test.ecn)
		var got served
		for q.Len() > 0 {
			p, dropped := q.Dequeue(now)
			got.dropped += dropped
			if p != nil {
				got.sent++
			}
			if p != nil && p.ECN == ecn.CE {
				got.marked++
			}
		}
		if got != test.expected {
			t.Errorf("%s: %+v, expected %+v", test.name, got, test.expected)
		}
	}
}

// TestDualPI2Coupling passes L4S packets without delay beside a classic queue: 2 × 0.14175 = 28.35 % of them are
// marked. Of 1,600 packets one in 16 is classic, which is 100, and 2 % of these are dropped, each for another L4S
// packet; 0.2835 of the other 1,502 are 425.
func TestDualPI2Coupling(t *testing.T) {
	q, now := backlog(3, 1000, ecn.NotECT)
	var l4s served
	classic := 0
	for range 1600 {
		q.Enqueue(&netem.Packet{Size: 1200, ECN: ecn.ECT1}, now)
		switch p, _ := q.Dequeue(now); p.ECN {
		case ecn.NotECT:
			classic++
		case ecn.CE:
			l4s.marked++
		default:
			l4s.sent++
		}
	}
	if l4s.marked != 425 || classic != 98 {
		t.Errorf("%d marked and %d classic, expected 425 and 98", l4s.marked, classic)
	}
}

// TestDualPI2ClassStats compares the counters of the two queues with those of the link and of the flows.
func TestDualPI2ClassStats(t *testing.T) {
	b := newBottleneck(t, dumbbell(50e6, netem.QueueDualPI2, 10))
	waited := b.lowLatency()
	prague := b.addPrague(10*time.Millisecond, 0)
	cubic := b.add(10*time.Millisecond, 0)
	b.run(10 * second)
	prague.Stop()
	cubic.Stop()
	b.run(20 * second)
	l4s, classic, ok := b.link.ClassStats()
	s := b.link.Stats()
	if !ok || l4s.Packets != prague.Stats().Acknowledged || classic.Packets != cubic.Stats().Acknowledged ||
		l4s.Packets+classic.Packets+s.DroppedQueue != s.Sent {
		t.Errorf("%d L4S and %d classic packets, by the link %+v", l4s.Packets, classic.Packets, s)
	}
	if l4s.Marked+classic.Marked != s.Marked || l4s.Marked != prague.Stats().Marked || classic.Marked != 0 ||
		l4s.Dropped+classic.Dropped != s.DroppedQueue || classic.Dropped == 0 {
		t.Errorf("%d and %d packets marked, %d and %d dropped, by the link %+v", l4s.Marked, classic.Marked,
			l4s.Dropped, classic.Dropped, s)
	}
	if p99 := l4s.Waited.Quantile(0.99); p99 != waited.Quantile(0.99) || classic.Waited.Quantile(0.5) < p99 {
		t.Errorf("L4S packets waited %v (p99), %v by their own times; classic ones %v (p50)", p99,
			waited.Quantile(0.99), classic.Waited.Quantile(0.5))
	}
	b.link.ResetStats()
	if l4s, classic, _ := b.link.ClassStats(); l4s.Packets+classic.Packets+l4s.Waited.Count() != 0 {
		t.Errorf("%d and %d packets after a reset", l4s.Packets, classic.Packets)
	}
	if _, _, ok := newLink(t, dumbbell(50e6, netem.QueueFIFO, 1), 1).ClassStats(); ok {
		t.Error("a first-in, first-out queue has two classes")
	}
}

func TestDualPI2Limit(t *testing.T) {
	q := netem.NewDualPI2(4000)
	dropped := 0
	for i, codepoint := range []ecn.Codepoint{ecn.NotECT, ecn.ECT1, ecn.ECT1, ecn.NotECT} {
		dropped += q.Enqueue(&netem.Packet{Size: 1000, Number: uint64(i), ECN: codepoint}, epoch)
	}
	// The third finds 2,000 bytes, and 2,000 + 1,514 fit; the fourth finds 3,000.
	if dropped != 1 || q.Len() != 3 {
		t.Errorf("%d dropped and %d waiting, expected 1 and 3", dropped, q.Len())
	}
	if dropped := netem.NewDualPI2(1).Enqueue(&netem.Packet{Size: 9000}, epoch); dropped != 0 {
		t.Error("an empty queue refused a packet")
	}
}

// TestDualPI2Recovers lets the queue be empty for a while: the share falls by 0.15 × 15 ms = 0.00225 per step and by 3
// × the decrease of the delay, and stays 0 from then on.
func TestDualPI2Recovers(t *testing.T) {
	q, now := backlog(3, 10, ecn.NotECT)
	for q.Len() > 0 {
		q.Dequeue(now)
	}
	for range 1000 {
		now = now.Add(24 * time.Hour)
		q.Enqueue(&netem.Packet{Size: 1200, ECN: ecn.NotECT}, now)
		if p, dropped := q.Dequeue(now); p == nil || dropped != 0 {
			t.Fatalf("%v and %d dropped after a day, expected the packet", p, dropped)
		}
	}
}

// TestDualPI2HoldsCubic fills 50 Mbit/s with a Cubic flow: its packets wait about the target of 15 ms; in a first-in,
// first-out queue they would fill the whole buffer.
func TestDualPI2HoldsCubic(t *testing.T) {
	race.SkipSequential(t)
	cfg := dumbbell(50_000_000, netem.QueueDualPI2, 10)
	b := newBottleneck(t, cfg)
	b.add(10*time.Millisecond, 0)
	var waited netem.DelayCounts
	b.arrived = func(p *netem.Packet) { waited.Add(p.Waited) }
	b.run(20 * second)
	rate := b.measure(20*second, 40*second)[0]
	if median := waited.Quantile(0.5); rate < 0.9*50e6 || median < 5*time.Millisecond || median > 25*time.Millisecond {
		t.Errorf("%.1f Mbit/s with a median wait of %v, expected 45 or more and about 15 ms", rate/1e6, median)
	}
}
