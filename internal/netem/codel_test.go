package netem_test

import (
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/test/race"
)

// TestCoDelControlLaw is a transcript of CoDel with a sender that does not react: a packet arrives every millisecond
// and one leaves every two milliseconds. Numbers are those of the packets, and the time is that of the Dequeue that
// dropped it.
func TestCoDelControlLaw(t *testing.T) {
	for _, codepoint := range []ecn.Codepoint{ecn.NotECT, ecn.ECT0} {
		q := netem.NewCoDel(1 << 30)
		var drops, marks []int
		for ms := range 500 {
			now := at(time.Duration(ms) * time.Millisecond)
			if dropped := q.Enqueue(&netem.Packet{Size: 1000, ECN: codepoint}, now); dropped != 0 {
				t.Fatalf("%d dropped by Enqueue", dropped)
			}
			if ms%2 == 0 {
				p, dropped := q.Dequeue(now)
				if p == nil {
					t.Fatalf("no packet at %d ms", ms)
				}
				for range dropped {
					drops = append(drops, ms)
				}
				if p.ECN == ecn.CE {
					marks = append(marks, ms)
				}
			}
		}
		// At 2k ms packet k is served, which has waited k ms: 5 ms at 10 ms. The first drop is 100 ms later, and the
		// following are 100 ms / √n apart: at 110 + 100, + 70.7, + 57.7, + 50, + 44.7, + 40.8 = 210, 280.7, 338.4,
		// 388.4, 433.2, 474.0; a packet is served every 2 ms.
		expected := []int{110, 210, 282, 340, 390, 434, 474}
		if codepoint == ecn.NotECT && (!slices.Equal(drops, expected) || marks != nil) {
			t.Errorf("drops at %v and marks at %v, expected drops at %v alone", drops, marks, expected)
		}
		if codepoint == ecn.ECT0 && (!slices.Equal(marks, expected) || drops != nil) {
			t.Errorf("drops at %v and marks at %v, expected marks at %v alone", drops, marks, expected)
		}
	}
}

// TestCoDelResumes stops the overload for a while: if the pause was short, dropping continues at nearly its last rate.
func TestCoDelResumes(t *testing.T) {
	// The first overload drops seven packets, as above, and would drop the next at 474 + 37.8 ms. Less than 1.6 s after
	// that, dropping begins with n = 6: at 110 ms, then + 40.8, + 37.8, + 35.4, + 33.3 and + 31.6 ms. Later it begins
	// with n = 1: at 110, 210 and 280.7 ms.
	for pause, expected := range map[time.Duration]int{second: 6, 3 * second: 3} {
		q := netem.NewCoDel(1 << 30)
		now := epoch
		overload := func(duration time.Duration) (drops int) {
			for end := now.Add(duration); now.Before(end); now = now.Add(2 * time.Millisecond) {
				for range 2 {
					q.Enqueue(&netem.Packet{Size: 1000}, now)
				}
				_, dropped := q.Dequeue(now)
				drops += dropped
			}
			for q.Len() > 0 {
				q.Dequeue(now)
			}
			return drops
		}
		before := overload(480 * time.Millisecond)
		now = now.Add(pause)
		if after := overload(300 * time.Millisecond); before != 7 || after != expected {
			t.Errorf("%d drops before and %d after a pause of %v, expected 7 and %d", before, after, pause, expected)
		}
	}
}

func TestCoDelLimits(t *testing.T) {
	q := netem.NewCoDel(2500)
	dropped := 0
	for range 4 {
		dropped += q.Enqueue(&netem.Packet{Size: 1000}, epoch)
	}
	if q.Len() != 2 || dropped != 2 {
		t.Errorf("%d packets wait and %d were dropped, expected 2 and 2", q.Len(), dropped)
	}
	q = netem.NewCoDel(1)
	if dropped := q.Enqueue(&netem.Packet{Size: 1000}, epoch); dropped != 0 {
		t.Error("an empty queue dropped a packet")
	}
	// The last packet is never dropped, however long it has waited.
	for i := range 10 {
		if p, dropped := q.Dequeue(at(time.Duration(i) * time.Hour)); p == nil || dropped != 0 {
			t.Fatalf("no packet, %d dropped; expected the one that waits", dropped)
		}
		q.Enqueue(&netem.Packet{Size: 1000}, at(time.Duration(i)*time.Hour))
	}
}

// TestCoDelHoldsTheQueueAtItsTarget lets Cubic fill the same buffer of 100 ms under CoDel and without it.
func TestCoDelHoldsTheQueueAtItsTarget(t *testing.T) {
	race.SkipSequential(t)
	delays := func(discipline string) (counts netem.DelayCounts, utilisation float64) {
		b := newBottleneck(t, with(func(c *netem.Config) {
			c.Delay, c.RateBPS, c.Queue = 10*time.Millisecond,
				50_000_000, discipline
		}))
		b.add(10*time.Millisecond, 0)
		b.run(5 * second)
		b.run(5 * second)
		b.arrived = func(p *netem.Packet) { counts.Add(p.Waited) }
		utilisation = sum(b.measure(5*second, 25*second)) / 50e6
		return counts, utilisation
	}
	codel, utilisation := delays(netem.QueueCoDel)
	fifo, _ := delays(netem.QueueFIFO)
	p50, p95 := codel.Quantile(0.5), codel.Quantile(0.95)
	t.Logf("CoDel: p50 %v, p95 %v, utilisation %.3f; FIFO: p50 %v", p50, p95, utilisation, fifo.Quantile(0.5))
	if p50 < time.Millisecond || p50 > 6*time.Millisecond || p95 > 8*time.Millisecond || utilisation < 0.95 {
		t.Errorf("under CoDel packets wait %v and at the 95th percentile %v, at utilisation %.3f; "+
			"expected about 5 ms and 0.95", p50, p95, utilisation)
	}
	if p50 := fifo.Quantile(0.5); p50 < 50*time.Millisecond {
		t.Errorf("without CoDel packets wait %v, expected most of the 100 ms that fit: the comparison shows nothing",
			p50)
	}
}
