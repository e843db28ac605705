package pacing

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestRandomArrivals offers frames of several flows at random times, with packets lost, late and out of order: each
// packet leaves once, in the order of its flow, not before its arrival, and without a rate limit no later than the
// mode's span after the arrival.
func TestRandomArrivals(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 3))
		mode := []Mode{Default, "spread:1", "spread:20ms", Burst5ms}[random.IntN(4)]
		flows := 1 + random.IntN(6)
		p := newPath(t, mode, flows)
		limited := random.IntN(3) == 0
		if limited {
			p.pacer.SetPath(Path{Estimate: 1 + random.Int64N(50_000_000), ApplicationLimited: random.IntN(2) == 0}, 0)
		}
		var longest time.Duration
		for frame := range int64(20) {
			for flow := range flows {
				packets := 1 + random.IntN(1+random.IntN(200))
				for i := range packets {
					switch random.IntN(20) {
					case 0:
						continue
					case 1:
						p.arrive(flow, framed(frame-1, random.IntN(packets), packets))
					}
					if random.IntN(3) == 0 {
						p.until(p.now + time.Duration(random.IntN(1000))*time.Microsecond)
					}
					if flow == 0 {
						p.arrive(flow, framed(frame, i, packets))
					} else {
						p.arrive(flow, foreign(frame))
					}
				}
			}
			for flow := range flows {
				longest = max(longest, plan(t, mode).Span(p.schedules[flow].Interval()))
			}
			p.until(p.now + time.Duration(random.IntN(33))*ms)
		}
		p.until(time.Hour)
		next := make([]int, flows)
		for _, s := range p.out {
			if s.number != next[s.flow] {
				t.Fatalf("seed %d: packet %d of flow %d left, expected %d", seed, s.number, s.flow, next[s.flow])
			}
			next[s.flow]++
			if hold := s.left - s.arrived; hold < 0 || !limited && hold > max(longest, maxInterval*2/5) {
				t.Fatalf("seed %d: a packet was held for %v with %s, expected at most %v", seed, hold, mode, longest)
			}
		}
		for flow, n := range next {
			if n != p.numbers[flow] || p.flows[flow].Len() != 0 {
				t.Fatalf("seed %d: %d packets of flow %d left, expected %d", seed, n, flow, p.numbers[flow])
			}
		}
		if p.pacer.Held() != 0 || len(p.pacer.flows.beginning)+len(p.pacer.flows.ongoing) != 0 {
			t.Fatalf("seed %d: %d packets in %d flows are left behind", seed, p.pacer.Held(),
				len(p.pacer.flows.beginning)+len(p.pacer.flows.ongoing))
		}
	}
}

// TestRate compares the sent bytes of frames that are too large with 2.5 × the estimate, over any 20 ms, plus the lead
// of a tick and a late timer, 4 ms, and one packet. Over longer times it compares them with the estimate, plus both
// slacks.
func TestRate(t *testing.T) {
	for _, estimate := range []int64{1_000_000, 10_000_000, 100_000_000} {
		p := newPath(t, "spread:1ms", 3)
		p.pacer.SetPath(Path{Estimate: estimate}, 0)
		for frame := range int64(5) {
			p.until(time.Duration(frame) * 33 * ms)
			for flow := range p.flows {
				for i := range 100 {
					p.arrive(flow, framed(frame, i, 100))
				}
			}
		}
		p.until(time.Hour)
		rate := float64(estimate) / 8
		for i, first := range p.out {
			bytes := 0
			for _, s := range p.out[i:] {
				bytes += p.bytes
				passed := (s.left - first.left).Seconds()
				if most := rate*(passed+0.134) + float64(2*p.bytes); float64(bytes) > most {
					t.Fatalf("%d bytes left from %v to %v, expected at most %.0f", bytes, first.left, s.left, most)
				}
				if most := rateFactor*rate*0.024 + float64(2*p.bytes); passed <= 0.02 && float64(bytes) > most {
					t.Fatalf("%d bytes left in the 20 ms from %v on, expected at most %.0f", bytes, first.left, most)
				}
			}
		}
		last := p.out[len(p.out)-1].left - p.out[0].left
		whole := time.Duration(float64(1500*p.bytes) / rate * float64(time.Second))
		if most, least := whole*101/100, whole*99/100-frameSlack-
			ongoingSlack; estimate < 100_000_000 && (last < least || last > most) {
			t.Errorf("1,500 packets left in %v at %d bit/s, expected %v to %v", last, estimate, least, most)
		}
	}
}

// TestLimitLifted removes the limit while packets are queued.
func TestLimitLifted(t *testing.T) {
	p := newPath(t, Default, 1)
	p.pacer.SetPath(Path{Estimate: 1000}, 0)
	p.frame(42, 0)
	p.until(100 * ms)
	if len(p.out) > 1 {
		t.Fatalf("%d packets left at 2.5 kbit/s in 100 ms", len(p.out))
	}
	p.pacer.SetPath(Path{}, p.now)
	if next, ok := p.pacer.Next(); !ok || next > p.now {
		t.Errorf("the next tick is at %v, expected at once", next)
	}
	p.until(101 * ms)
	if len(p.out) != 42 {
		t.Errorf("%d packets left, expected 42", len(p.out))
	}
}

// TestDebtIsBounded sends audio past a pacer at ten times the rate: frames continue at most 500 ms after that.
func TestDebtIsBounded(t *testing.T) {
	p := newPath(t, Default, 1)
	p.pacer.SetPath(Path{Estimate: 100_000}, 0)
	for range 1000 {
		p.now += 20 * ms
		p.pacer.Tick(p.now)
		p.pacer.Spend(6000)
	}
	p.frame(2, 0)
	begun := p.now
	p.until(time.Hour)
	if len(p.out) != 2 || p.out[0].left-begun < 400*ms || p.out[0].left-begun > 600*ms {
		t.Errorf("packets left at %v, expected the first of 2 half a second after %v", p.out, begun)
	}
}

// TestOversleptTick begins ticks late: all due packets leave with them, and the frame is not delayed.
func TestOversleptTick(t *testing.T) {
	p := newPath(t, Default, 1)
	p.frame(42, 0)
	for {
		next, ok := p.pacer.Next()
		if !ok {
			break
		}
		p.until(next - 1)
		p.now = next + 1100*time.Microsecond
		p.until(p.now)
	}
	if got := p.transcript(); got != lines(`
		0s: 7
		3.32ms: 10
		6.5ms: 10
		9.67ms: 10
		12.85ms: 5`) {
		t.Errorf("packets left at\n%s", got)
	}
}

// TestFilter removes packets from flows with queued packets.
func TestFilter(t *testing.T) {
	p := newPath(t, "spread:100ms", 5)
	p.frame(20, 0)
	held := p.pacer.Held()
	for flow := range 3 {
		waits := p.flows[flow].Len()
		changed := p.pacer.Filter(p.flows[flow], func(s sent) bool { return flow == 1 && s.number%2 == 0 })
		if !changed || flow != 1 && p.flows[flow].Len() != 0 {
			t.Errorf("flow %d keeps %d of %d packets", flow, p.flows[flow].Len(), waits)
		}
		held -= waits - p.flows[flow].Len()
	}
	if p.pacer.Filter(p.flows[3], func(sent) bool { return true }) ||
		p.pacer.Filter(p.flows[0], func(sent) bool { return true }) {
		t.Error("a filter that keeps everything has changed data")
	}
	if p.pacer.Held() != held {
		t.Errorf("%d packets are held, expected %d", p.pacer.Held(), held)
	}
	before := len(p.out)
	p.until(time.Second)
	if n := len(p.out) - before; n != held {
		t.Errorf("%d packets left, expected %d", n, held)
	}
	for i := before + 1; i < len(p.out); i++ {
		if p.out[i].flow == 1 && p.out[i].number%2 != 0 {
			t.Errorf("packet %d left though it was taken out", p.out[i].number)
		}
	}
}

func TestPacingDoesNotAllocate(t *testing.T) {
	p := newPath(t, Default, 3)
	p.out = make([]sent, 0, 1<<10)
	frame := int64(0)
	step := func() {
		frame++
		p.out = p.out[:0]
		for flow := range p.flows {
			for i := range 100 {
				p.arrive(flow, framed(frame, i, 100))
			}
		}
		p.until(p.now + 33*ms)
	}
	step()
	if n := testing.AllocsPerRun(100, step); n != 0 {
		t.Errorf("%v allocations per frame, expected none", n)
	}
}

// BenchmarkPacer measures frames of 175 packets that arrive at once: ns/op is per frame.
func BenchmarkPacer(b *testing.B) {
	p := newPath(b, Default, 1)
	b.ReportAllocs()
	for n := range b.N {
		p.out = p.out[:0]
		for i := range 175 {
			p.arrive(0, framed(int64(n), i, 175))
		}
		p.until(p.now + 33*ms)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*175), "ns/packet")
}
