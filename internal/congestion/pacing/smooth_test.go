package pacing

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// even is a smooth path with an estimate in bit/s.
func even(estimate int64) Path { return Path{Estimate: estimate, Smooth: true} }

// TestSmoothTranscripts lists the ticks of frames of packets of 1,200 bytes. At 100 Mbit/s, 1.05 times the estimate are
// 5.5 packets in 0.5 ms.
func TestSmoothTranscripts(t *testing.T) {
	for _, test := range []struct {
		name  string
		mode  Mode
		flows int
		known Path
		run   func(p *path)
		want  string
	}{
		{"a frame", Default, 1, even(100_000_000), func(p *path) { p.frame(42, 0) }, `
			100ms: 6
			100.5ms: 5
			101ms: 6
			101.5ms: 5
			102ms: 6
			102.5ms: 5
			103ms: 6
			103.5ms: 3`},
		{"whatever the mode", "spread:20ms", 1, even(100_000_000), func(p *path) { p.frame(17, 0) }, `
			100ms: 6
			100.5ms: 5
			101ms: 6`},
		{"bursts as of GCC, too", Burst5ms, 1, even(100_000_000), func(p *path) { p.frame(17, 0) }, `
			100ms: 6
			100.5ms: 5
			101ms: 6`},
		{"however little of the estimate is used", Default, 1,
			Path{Estimate: 100_000_000, Smooth: true, ApplicationLimited: true},
			func(p *path) { p.frame(17, 0) }, `
			100ms: 6
			100.5ms: 5
			101ms: 6`},
		// 5 Mbit/s are a packet in 1.92 ms.
		{"single packets at a low rate", Default, 1, even(5_000_000), func(p *path) { p.frame(7, 0) }, `
			100ms: 1
			101.5ms: 1
			103.5ms: 1
			105.5ms: 1
			107.5ms: 1
			109.5ms: 1
			111.5ms: 1`},
		// At 97 Mbit/s a packet takes 99 µs, and a frame of 337 packets its whole interval.
		{"one by one", Default, 1, Path{Estimate: 100_000_000, Smooth: true, Spaced: true},
			func(p *path) { p.frame(6, 0) }, `
			100ms: 1
			100.05ms: 1
			100.15ms: 1
			100.25ms: 1
			100.35ms: 1
			100.45ms: 1`},
		// Ticks of the publisher are 2.22 ms apart, 7 packets take 0.64 ms.
		{"as it arrives", Default, 1, even(100_000_000), func(p *path) { p.frame(21, 2220*time.Microsecond) }, `
			100ms: 6
			100.5ms: 1
			102.22ms: 6
			102.5ms: 1
			104.44ms: 6
			104.5ms: 1`},
		// 400 Mbit/s are 21.9 packets in 0.5 ms.
		{"long ticks at a high rate", Default, 1, even(400_000_000), func(p *path) { p.frame(88, 0) }, `
			100ms: 22
			100.5ms: 22
			101ms: 22
			101.5ms: 22`},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPath(t, test.mode, test.flows)
			p.pacer.SetPath(test.known, 0)
			p.until(100 * ms)
			test.run(p)
			p.until(time.Second)
			if got := p.transcript(); got != lines(test.want) {
				t.Errorf("packets left at\n%s, expected\n%s", got, lines(test.want))
			}
		})
	}
}

// TestBurst sends a frame of 250 kB, 26.7 ms at 75 Mbit/s, on a path that admits 10 ms of queue: at 1.7 times the
// estimate until the queue is full after 14.3 ms, 227 kB, and then at the estimate.
func TestBurst(t *testing.T) {
	p := newPath(t, Default, 1)
	p.pacer.SetPath(Path{Estimate: 75_000_000, Smooth: true, Burst: 10}, 0)
	p.until(100 * ms)
	p.frame(250_000/fullPacket, 0)
	p.until(time.Second)
	took := p.out[len(p.out)-1].left - 100*ms
	if least, most := 16*ms, 18*ms; took < least || took > most {
		t.Errorf("the frame took %v, expected %v to %v", took, least, most)
	}
}

// TestSmoothFramesLeaveInTurn has frames of 10 packets at 24 Mbit/s, at which a packet takes 0.4 ms.
func TestSmoothFramesLeaveInTurn(t *testing.T) {
	p := newPath(t, Default, 3)
	p.pacer.SetPath(even(24_000_000), 0)
	p.until(100 * ms)
	p.several(1, 2)
	p.until(time.Second)
	if got, want := p.frames(10), lines(`
		a0: 100ms to 104ms
		b0: 104ms to 108ms
		c0: 108ms to 112ms
		a1: 112ms to 116ms
		b1: 116ms to 120ms
		c1: 120ms to 124ms`); got != want {
		t.Errorf("frames left\n%s, expected\n%s", got, want)
	}
}

// TestSmoothFillsGaps has two publishers that send frames of 20 packets over 13 ms at the same time, at 100 Mbit/s: the
// packets of the second frame leave while no packet of the first is there.
func TestSmoothFillsGaps(t *testing.T) {
	p := newPath(t, Default, 2)
	p.pacer.SetPath(even(100_000_000), 0)
	for i := range 20 {
		p.until(100*ms + time.Duration(i)*660*time.Microsecond)
		p.arrive(0, framed(1, i, 20))
		p.arrive(1, framed(1, i, 20))
	}
	p.until(time.Second)
	for _, s := range p.out {
		if held := s.left - s.arrived; held > smoothTick {
			t.Errorf("packet %d of flow %d was held for %v, expected a tick at most", s.number, s.flow, held)
		}
	}
}

// TestSmoothWakesLate begins each tick some time late: the packets of a tick are those of the time since the last tick,
// for 1 ms at most.
func TestSmoothWakesLate(t *testing.T) {
	for _, test := range []struct {
		late time.Duration
		most int // packets in a tick
		took time.Duration
	}{
		// At 100 Mbit/s 200 packets take 19.2 ms.
		{0, 6, 19200 * time.Microsecond},
		{60 * time.Microsecond, 6, 19200 * time.Microsecond},
		{400 * time.Microsecond, 11, 19200 * time.Microsecond},
		// 10 packets, 0.96 ms at the estimate, leave every 2.5 ms.
		{2 * ms, 10, 50 * ms},
	} {
		p := newPath(t, Default, 1)
		p.pacer.SetPath(even(100_000_000), 0)
		p.until(100 * ms)
		p.frame(200, 0)
		for next, ok := p.pacer.Next(); ok; next, ok = p.pacer.Next() {
			p.until(next - 1)
			p.now = next + test.late
			p.until(p.now)
		}
		most := 0
		for i := range p.out {
			n := i
			for n < len(p.out) && p.out[n].left == p.out[i].left {
				n++
			}
			most = max(most, n-i)
		}
		took := p.out[199].left - 100*ms
		if most > test.most || took < test.took-2*ms || took > test.took+2*ms {
			t.Errorf("%v late: 200 packets left within %v, %d at once; expected %v and at most %d", test.late, took,
				most,
				test.took, test.most)
		}
	}
}

// TestSmoothQueue serves a queue at exactly the estimate. Three publishers send frames of sizes that vary by a fifth,
// 98 % of the estimate in all, at the same time or one after another.
func TestSmoothQueue(t *testing.T) {
	const interval = time.Second / 30
	for _, estimate := range []int64{20_000_000, 50_000_000, 100_000_000, 300_000_000} {
		for _, phase := range []time.Duration{0, 2 * ms, interval / 3} {
			p, random := newPath(t, Default, 3), rand.New(rand.NewPCG(uint64(phase), 11))
			p.pacer.SetPath(even(estimate), 0)
			each := 0.98 * float64(estimate) / 8 / 30 / 3
			for frame := range int64(90) {
				for flow := range p.flows {
					p.until(time.Duration(frame)*interval + time.Duration(flow)*phase)
					packets := int(each * (0.8 + 0.4*random.Float64()) / float64(p.bytes))
					for i := range packets {
						p.arrive(flow, framed(frame, i, packets))
					}
				}
			}
			p.until(10 * time.Second)
			longest, queue, before := time.Duration(0), 0.0, time.Duration(0)
			rate := float64(estimate) / 8 / float64(time.Second)
			for _, s := range p.out {
				queue = max(0, queue-rate*float64(s.left-before)) + float64(p.bytes)
				before = s.left
				longest = max(longest, time.Duration(queue/rate))
			}
			if longest > time.Millisecond {
				t.Errorf("%d bit/s, publishers %v apart: a packet leaves the queue after %v, expected 1 ms at most",
					estimate, phase, longest)
			}
			var waited []time.Duration
			for _, s := range p.out {
				waited = append(waited, s.left-s.arrived)
			}
			slices.Sort(waited)
			if p95 := waited[len(waited)*95/100]; p95 > 45*ms || len(p.out) != p.numbers[0]+p.numbers[1]+p.numbers[2] {
				t.Errorf("%d bit/s, publishers %v apart: 95 %% of %d packets left within %v, expected 45 ms", estimate,
					phase, len(p.out), p95)
			}
		}
	}
}

// TestSmoothRate sends random frames, retransmissions and audio over a smooth path: over any 5 ms the sent bytes are at
// most 1.05 times the estimate, a tick and a packet, besides the audio, which bypasses the pacer. No packet leaves
// while a packet of a frame that began earlier is queued, and every packet leaves.
func TestSmoothRate(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 13))
		estimate := int64(5_000_000) << random.IntN(6)
		p := &repairPath{path: newPath(t, []Mode{Default, "spread:20ms", Burst5ms}[seed%3], 3)}
		p.pacer.SetPath(Path{Estimate: estimate, Smooth: true, ApplicationLimited: random.IntN(2) == 0,
			Carried: 2 * estimate}, 0)
		audio := 0
		for frame := range int64(30) {
			for flow := range p.flows {
				p.until(p.now + time.Duration(random.IntN(8000))*time.Microsecond)
				for i, packets := 0, 1+random.IntN(min(int(estimate/200_000), 150)); i < packets; i++ {
					if random.IntN(8) == 0 {
						p.until(p.now + time.Duration(random.IntN(700))*time.Microsecond)
					}
					p.arrive(flow, framed(frame, i, packets))
				}
			}
			p.ask(random.IntN(4))
			p.pacer.Spend(audioBytes)
			audio += audioBytes
		}
		p.until(time.Hour)
		sent, total := p.departures()
		if want := p.numbers[0] + p.numbers[1] + p.numbers[2]; len(p.out) != want || p.pacer.Held() != 0 {
			t.Fatalf("seed %d: %d packets left, expected %d", seed, len(p.out), want)
		}
		rate := smoothFactor * float64(estimate) / 8
		for i := range sent {
			bytes := 0
			for _, at := range sent[i:] {
				if at-sent[i] > 5*ms {
					break
				}
				bytes += p.bytes
				most := rate*(at-sent[i]+smoothTick).Seconds() + float64(p.bytes)
				if float64(bytes) > most {
					t.Fatalf("seed %d: %d of %d bytes left from %v to %v, expected at most %.0f", seed, bytes, total,
						sent[i], at, most)
				}
			}
		}
		p.checkOrder(t, seed)
	}
}

// departures returns the times at which packets and retransmissions left, in order, and their bytes.
func (p *repairPath) departures() (times []time.Duration, bytes int) {
	times = slices.Clone(p.repairs)
	for _, s := range p.out {
		times = append(times, s.left)
	}
	slices.Sort(times)
	return times, len(times) * p.bytes
}

// checkOrder fails if a packet left although a packet of a frame that began earlier had arrived and not left.
func (p *repairPath) checkOrder(t *testing.T, seed uint64) {
	t.Helper()
	for i, s := range p.out {
		// A frame has 150 packets at most.
		for _, other := range p.out[i+1 : min(i+450, len(p.out))] {
			if other.arrived < s.left && other.turn < s.turn && !other.begins {
				t.Fatalf("seed %d: packet %d of flow %d left at %v before packet %d of flow %d, which had "+
					"arrived at %v "+
					"and whose frame began earlier", seed, s.number, s.flow, s.left, other.number, other.flow,
					other.arrived)
			}
		}
	}
}

// TestSmoothStarvesNone sends three flows half as much again as the estimate. Frames that have waited for an interval
// are dropped, and every flow gets its share.
func TestSmoothStarvesNone(t *testing.T) {
	const interval = time.Second / 30
	for seed := range uint64(10) {
		p, random := newPath(t, Default, 3), rand.New(rand.NewPCG(seed, 17))
		p.budget = interval
		p.pacer.SetPath(even(50_000_000), 0)
		for frame := range int64(90) {
			for flow := range p.flows {
				p.until(time.Duration(frame)*interval + time.Duration(flow)*time.Duration(seed)*ms)
				// 86 packets of each flow in an interval are 74 Mbit/s.
				packets := 76 + random.IntN(20)
				for i := range packets {
					p.arrive(flow, framed(frame, i, packets))
				}
			}
		}
		p.until(10 * time.Second)
		var whole [3]int
		for _, s := range p.out {
			if s.begins {
				whole[s.flow]++
			}
		}
		for _, n := range whole {
			if n < 54 || n > 66 {
				t.Errorf("seed %d: %v of 90 frames of the flows left, expected 60 of each", seed, whole)
			}
		}
	}
}

// TestPathBecomesSmooth sends a frame of 60 packets at 2.5 times the estimate of 24 Mbit/s until the path becomes
// smooth: the rest leaves after the path has delivered what was sent.
func TestPathBecomesSmooth(t *testing.T) {
	p := newPath(t, "spread:1ms", 1)
	p.pacer.SetPath(Path{Estimate: 24_000_000}, 0)
	p.until(100 * ms)
	p.frame(60, 0)
	p.until(105 * ms)
	before := len(p.out)
	p.pacer.SetPath(even(24_000_000), p.now)
	p.until(time.Second)
	// Packet n would leave a queue of the estimate 0.4 ms × n after 100 ms, and 1 ms of that queue is permitted.
	if next := p.out[before].left - 100*ms; next < time.Duration(before)*400*time.Microsecond-ms || before < 25 {
		t.Errorf("%d packets left by 105 ms, the next one %v after the first", before, next)
	}
	if last := p.out[59].left - 100*ms; last > 24500*time.Microsecond {
		t.Errorf("the frame left within %v, expected the 24 ms of the estimate", last)
	}
}

// TestSmoothComesAndGoes changes all parts of the path at random. All packets leave, in the order of their flow.
func TestSmoothComesAndGoes(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 19))
		p := &repairPath{path: newPath(t, []Mode{Default, "spread:20ms", Burst5ms}[seed%3], 4)}
		for frame := range int64(40) {
			for flow := range p.flows {
				packets := 1 + random.IntN(60)
				for i := range packets {
					p.arrive(flow, framed(frame, i, packets))
				}
			}
			p.ask(random.IntN(10))
			for range random.IntN(4) {
				p.until(p.now + time.Duration(random.IntN(9000))*time.Microsecond)
				p.pacer.SetPath(Path{Estimate: int64(random.IntN(3)) * 20_000_000, Smooth: random.IntN(2) == 0,
					Window: random.IntN(2) * 100_000, Evenly: random.IntN(2) == 0,
					Unmarked: random.IntN(2) == 0, ApplicationLimited: random.IntN(2) == 0}, p.now)
				p.pacer.SetInFlight(random.IntN(120_000))
				if random.IntN(8) == 0 {
					p.pacer.Probe(80_000_000, 50_000, 40, p.now+20*ms, p.now)
				}
			}
		}
		p.until(time.Hour)
		next := make([]int, len(p.flows))
		for _, s := range p.out {
			if s.number != next[s.flow] {
				t.Fatalf("seed %d: packet %d of flow %d left, expected %d", seed, s.number, s.flow, next[s.flow])
			}
			next[s.flow]++
		}
		if !slices.Equal(next, p.numbers) || p.pacer.Held() != 0 {
			t.Fatalf("seed %d: %v packets of the flows left, expected %v", seed, next, p.numbers)
		}
	}
}

func TestSmoothPacingDoesNotAllocate(t *testing.T) {
	p := newPath(t, Default, 3)
	p.pacer.SetPath(Path{Estimate: 100_000_000, Smooth: true, Window: 150_000}, 0)
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
		p.until(p.now + 12*ms)
		p.pacer.SetInFlight(100_000)
		p.until(p.now + 12*ms)
		p.pacer.SetInFlight(0)
		p.until(p.now + 9*ms)
	}
	for range 10 {
		step()
	}
	if n := testing.AllocsPerRun(100, step); n != 0 {
		t.Errorf("%v allocations per frame, expected none", n)
	}
}

// BenchmarkSmooth measures frames of 175 packets that arrive at once, at 50 Mbit/s, with and without smoothing.
func BenchmarkSmooth(b *testing.B) {
	for name, known := range map[string]Path{"usual": {Estimate: 55_000_000}, "smooth": even(55_000_000)} {
		b.Run(name, func(b *testing.B) {
			p := newPath(b, Default, 1)
			p.pacer.SetPath(known, 0)
			for n := range b.N {
				p.out = p.out[:0]
				for i := range 175 {
					p.arrive(0, framed(int64(n), i, 175))
				}
				p.until(p.now + 33*ms)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*175), "ns/packet")
		})
	}
}
