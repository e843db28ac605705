package congestion

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/netem"
)

// l4sQueue is the capacity of a queue, in bytes: 100 ms at 300 Mbit/s.
const l4sQueue = 4 << 20

// rate returns the mean rate of a flow at the bottleneck while run advances to a time, in bit/s.
func (b *bottleneck) rate(flow uint64, until time.Duration) float64 {
	before, from := b.queue.bytes[flow], b.now
	b.run(until, nil)
	return float64(b.queue.bytes[flow]-before) * 8 / (b.now - from).Seconds()
}

// TestL4SLinks checks the estimate of a link with DualPI2, and its queue. At 10 Mbit/s packets are not marked before
// three of them wait, 2.9 ms, and the growth of one segment in a virtual round trip is 5 % of the rate.
func TestL4SLinks(t *testing.T) {
	for _, c := range []struct {
		mbps, share float64
		queue       time.Duration
	}{
		{10, 0.9, 6500 * time.Microsecond}, {50, 0.95, 2 * time.Millisecond}, {100, 0.95, 2 * time.Millisecond},
		{300, 0.95, 2 * time.Millisecond},
	} {
		t.Run(fmt.Sprintf("%v Mbit/s", c.mbps), func(t *testing.T) {
			const from, until = 5 * time.Second, 12 * time.Second
			b := newBottleneck(t, c.mbps, netem.NewDualPI2(l4sQueue))
			s := b.add(newL4S(DefaultConfig(), start), 7)
			b.run(from, nil)
			dropped := s.dropped
			used := b.rate(1, until) / (c.mbps * mbit)
			_, mean, _ := s.extremes(from, until)
			atLeast(t, "mean estimate, of the link", mean/(c.mbps*mbit), c.share)
			atLeast(t, "used", used, budgetShare*c.share)
			atMost(t, "p99 of the queue", b.queue.wait(from, until, 0.99), c.queue)
			atMost(t, "frames dropped", float64(s.dropped-dropped), 0)
			if stats := s.estimator.Stats(); stats.L4S != L4SMarked || !stats.Smooth || stats.ECN != ecn.ECT1 {
				t.Errorf("the state is %+v", stats)
			}
		})
	}
}

// TestUnmarkedPath uses a third of a link, so that no queue marks: after ten seconds frames leave in longer ticks.
func TestUnmarkedPath(t *testing.T) {
	b := newBottleneck(t, 100, netem.NewDualPI2(l4sQueue))
	cfg := DefaultConfig()
	cfg.Max = 30 * mbit
	s := b.add(newL4S(cfg, start), 7)
	for _, c := range []struct {
		until  time.Duration
		smooth bool
	}{{9 * time.Second, true}, {11 * time.Second, false}} {
		b.run(c.until, nil)
		stats := s.estimator.Stats()
		if stats.Smooth != c.smooth || stats.Unmarked == c.smooth || stats.Evenly || stats.L4S != L4SCapable ||
			stats.ECN != ecn.ECT1 {
			t.Errorf("after %v the state is %+v, expected smooth %v, else unmarked", c.until, stats, c.smooth)
		}
	}
}

// TestBursts has a rate with its upper limit, 90 Mbit/s. Nothing is marked, so that bursts grow, until a Prague flow
// joins.
func TestBursts(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Profile = "paper000"
	b := newBottleneck(t, 200, netem.NewL4SPriority(200e6, l4sQueue))
	s := b.add(newL4S(cfg, start), 7)
	b.run(4*time.Second, nil)
	if stats := s.estimator.Stats(); stats.Burst != burstMost || stats.Congested > 0 {
		t.Errorf("in the queue of paper 000 bursts are %v long, %d packets marked", stats.Burst, stats.Congested)
	}
	b.others = append(b.others, netem.NewPragueFlow(2, 10*time.Millisecond, start.Add(4*time.Second)))
	b.run(6*time.Second, nil)
	if stats := s.estimator.Stats(); stats.Burst != 0 || stats.L4S != L4SMarked {
		t.Errorf("beside a Prague flow bursts are %v long, the state is %v", stats.Burst, stats.L4S)
	}
}

// TestBurstsAreRetried ends bursts at half of the longest one for a minute.
func TestBurstsAreRetried(t *testing.T) {
	var b burstBound
	at := func(now time.Duration, want time.Duration) {
		t.Helper()
		if b.grow(now, true); b.length != want {
			t.Errorf("after %v bursts are %v long, expected %v", now, b.length, want)
		}
	}
	at(burstTime-1, 0)
	at(burstTime, burstFirst)
	at(2*burstTime, 2*burstFirst)
	b.met(3 * burstTime)
	at(3*burstTime, 0)
	at(4*burstTime, burstFirst)
	at(5*burstTime, burstFirst)
	at(3*burstTime+burstRetry, 2*burstFirst)
	b.grow(4*burstTime+burstRetry, false)
	at(4*burstTime+burstRetry+1, 0)
}

// TestShortBurstsEnd halves bursts until they are shorter than a millisecond: there are none until the retry.
func TestShortBurstsEnd(t *testing.T) {
	var b burstBound
	now := time.Duration(0)
	for _, want := range []time.Duration{burstFirst, burstFirst / 2, 0} {
		now += burstTime
		if b.grow(now, true); b.length != want {
			t.Errorf("after %v bursts are %v long, expected %v", now, b.length, want)
		}
		b.met(now)
	}
	// No burst was met since the last one.
	if b.grow(now+burstRetry-burstTime, true); b.length != burstFirst {
		t.Errorf("after the retry bursts are %v long, expected %v", b.length, burstFirst)
	}
}

// TestL4SRamp starts at 12.5 Mbit/s on an idle link.
func TestL4SRamp(t *testing.T) {
	b := newBottleneck(t, 100, netem.NewDualPI2(l4sQueue))
	cfg := DefaultConfig()
	cfg.Profile = "paper000"
	s := b.add(newL4S(cfg, start), 7)
	b.run(5*time.Second, nil)
	at, ok := s.reaches(0, 0.9*90*mbit)
	if !ok {
		t.Fatal("the estimate never reached 81 Mbit/s")
	}
	atMost(t, "time to 90 % of 90 Mbit/s", at, time.Second)
	atMost(t, "longest queue", b.queue.wait(0, 5*time.Second, 1), 10*time.Millisecond)
}

// TestL4SCliff removes four fifths of a link's capacity within 50 ms. Nothing that the sender knows in time makes the
// queue shorter than 72 ms if a frame is on its way.
func TestL4SCliff(t *testing.T) {
	const fall = 8 * time.Second
	for seed := range uint64(3) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			b := newBottleneck(t, 100, netem.NewDualPI2(l4sQueue))
			s := b.add(newL4S(DefaultConfig(), start), seed)
			b.run(fall+4*time.Second, func(now time.Duration) {
				if now >= fall && now <= fall+50*time.Millisecond {
					rate := 100 - 80*(now-fall).Seconds()/0.05
					if err := b.link.Reconfigure(linkOf(rate), start.Add(now)); err != nil {
						t.Fatal(err)
					}
				}
			})
			atMost(t, "longest queue", b.queue.wait(fall, b.now, 1), 100*time.Millisecond)
			last := fall
			for _, w := range b.queue.waits {
				if w.at >= fall && w.at < last+200*time.Millisecond && w.delay > 5*time.Millisecond {
					last = w.at
				}
			}
			atMost(t, "time until the queue stays below 5 ms for 200 ms", last-fall, 300*time.Millisecond)
			_, mean, _ := s.extremes(fall+time.Second, b.now)
			atLeast(t, "mean estimate from 1 s on", mean, 0.8*20*mbit)
			if stats := s.estimator.Stats(); stats.L4S != L4SMarked {
				t.Errorf("the state is %v, expected %v", stats.L4S, L4SMarked)
			}
		})
	}
}

// TestL4SBesidePrague joins a sender of frames with one to three flows of Prague, and checks its share.
func TestL4SBesidePrague(t *testing.T) {
	for _, c := range []struct {
		name  string
		queue netem.Queue
		mbps  float64
		flows int
		rtt   time.Duration
		least float64 // of the fair share
	}{
		{"DualPI2, 1 flow", netem.NewDualPI2(l4sQueue), 100, 1, 20 * time.Millisecond, 0.85},
		{"DualPI2, 2 flows", netem.NewDualPI2(l4sQueue), 100, 2, 20 * time.Millisecond, 0.85},
		{"DualPI2, 3 flows", netem.NewDualPI2(l4sQueue), 100, 3, 20 * time.Millisecond, 0.85},
		{"DualPI2, 1 flow, RTT of 50 ms", netem.NewDualPI2(l4sQueue), 100, 1, 50 * time.Millisecond, 0.75},
		{"DualPI2, 1 flow, RTT of 100 ms", netem.NewDualPI2(l4sQueue), 100, 1, 100 * time.Millisecond, 0.5},
		{"paper 000, 1 flow", netem.NewL4SPriority(200e6, l4sQueue), 200, 1, 20 * time.Millisecond, 0.8},
		// A meter that is empty marks whoever sends next after another, so that evenly spaced flows keep their phases.
		{"paper 000, 2 flows", netem.NewL4SPriority(200e6, l4sQueue), 200, 2, 20 * time.Millisecond, 0.5},
		{"paper 000, 3 flows", netem.NewL4SPriority(200e6, l4sQueue), 200, 3, 20 * time.Millisecond, 0.8},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBottleneck(t, c.mbps, c.queue)
			cfg := DefaultConfig()
			cfg.Profile = "paper000"
			s := b.add(newL4S(cfg, start), 7)
			s.back, s.extra = c.rtt/2, c.rtt/2-10*time.Millisecond
			for i := range c.flows {
				b.others = append(b.others,
					netem.NewPragueFlow(uint64(i+2), 10*time.Millisecond, start.Add(3*time.Second)))
			}
			b.run(8*time.Second, nil)
			share := b.rate(1, 23*time.Second) * float64(c.flows+1) / (100 * mbit)
			atLeast(t, "share of fair", share, c.least)
			atMost(t, "share of fair", share, 1.35)
			if c.rtt <= 20*time.Millisecond {
				atMost(t, "p99 of the queue", b.queue.wait(8*time.Second, b.now, 0.99), 2*time.Millisecond)
			}
		})
	}
}

// TestClassicQueue sends into CoDel with ECN, which is no L4S queue, beside Cubic with ECN.
func TestClassicQueue(t *testing.T) {
	for _, flows := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d flows", flows), func(t *testing.T) {
			b := newBottleneck(t, 50, netem.NewCoDel(l4sQueue))
			s := b.add(newL4S(DefaultConfig(), start), 7)
			s.begins = 3 * time.Second
			for i := range flows {
				b.others = append(b.others, netem.NewECNCubicFlow(uint64(i+2), 10*time.Millisecond, start))
			}
			var marked, found time.Duration
			b.run(10*time.Second, func(now time.Duration) {
				stats := s.estimator.Stats()
				if marked == 0 && stats.Congested > 0 {
					marked = now
				}
				if found == 0 && stats.ECNFallbacks[Classic] > 0 {
					found = now
					// The first reduction counts once: nothing shows yet that others need capacity.
					if c := s.estimator.(*l4s).classic; c.top < 0.99*c.rate/cubicBeta {
						t.Errorf("%v bit/s remain of %v, expected %v of it", c.rate, c.top, cubicBeta)
					}
				}
			})
			if found == 0 {
				t.Fatalf("the queue was not recognised: %+v", s.estimator.Stats())
			}
			atMost(t, "time from the first mark", found-marked, 2*time.Second)
			if stats := s.estimator.Stats(); stats.L4S != L4SClassic || stats.ECN != ecn.ECT0 {
				t.Errorf("afterwards %v and %v", stats.L4S, stats.ECN)
			}
			cubic := b.queue.bytes[2]
			share := b.rate(1, 25*time.Second) * float64(flows+1) / (50 * mbit)
			atLeast(t, "share of fair", share, 0.7)
			atMost(t, "share of fair", share, 1.3)
			others := float64(b.queue.bytes[2]-cubic) * 8 / 15 * float64(flows+1) / (50 * mbit)
			atLeast(t, "a Cubic flow's share of fair", others, 0.7)
		})
	}
}

// TestNoFalseAlarm sends into DualPI2, alone and beside others, which must not count as a classic queue.
func TestNoFalseAlarm(t *testing.T) {
	for seed := range uint64(20) {
		b := newBottleneck(t, []float64{10, 30, 100}[seed%3], netem.NewDualPI2(l4sQueue))
		s := b.add(newL4S(DefaultConfig(), start), seed)
		at := start.Add(time.Duration(seed) * 200 * time.Millisecond)
		switch seed % 4 {
		case 1:
			b.others = append(b.others, netem.NewPragueFlow(2, 10*time.Millisecond, at))
		case 2:
			b.others = append(b.others, netem.NewCubicFlow(2, 10*time.Millisecond, at))
		case 3:
			b.others = append(b.others, netem.NewPragueFlow(2, 10*time.Millisecond, at),
				netem.NewCubicFlow(3, 10*time.Millisecond, at))
		}
		b.run(8*time.Second, nil)
		if stats := s.estimator.Stats(); stats.ECNFallbacks != [Fallbacks]uint64{} {
			t.Errorf("seed %d: fallbacks %v", seed, stats.ECNFallbacks)
		}
	}
}

// TestLateHost: packets reach the receiver later from the time on at which another flow joins and the host is busy. The
// packets of an L4S queue then seem to wait long, marked and unmarked ones, which must not count as a classic queue.
func TestLateHost(t *testing.T) {
	for seed := range uint64(12) {
		late := []time.Duration{3, 5, 10, 25}[seed%4] * time.Millisecond
		b := newBottleneck(t, []float64{20, 50, 100}[seed%3], netem.NewDualPI2(l4sQueue))
		s := b.add(newL4S(DefaultConfig(), start), seed)
		for range seed%2 + 1 {
			b.others = append(b.others, netem.NewPragueFlow(uint64(len(b.others)+2), 10*time.Millisecond,
				start.Add(3*time.Second)))
		}
		b.run(6*time.Second, func(now time.Duration) {
			if now >= 3*time.Second {
				s.extra = late
			}
		})
		if stats := s.estimator.Stats(); stats.ECNFallbacks != [Fallbacks]uint64{} || stats.ECN != ecn.ECT1 {
			t.Errorf("seed %d, %v late: fallbacks %v, state %v", seed, late, stats.ECNFallbacks, stats.L4S)
		}
	}
}

// TestHiddenMarks compares a receiver that reports no marks with GCC: the rate and the queue are those of GCC.
func TestHiddenMarks(t *testing.T) {
	measure := func(e Estimator) (rate float64, queue time.Duration) {
		b := newBottleneck(t, 50, netem.NewDualPI2(l4sQueue))
		s := b.add(e, 7)
		s.hides = true
		b.run(5*time.Second, nil)
		rate = b.rate(1, 20*time.Second)
		return rate, b.queue.wait(5*time.Second, b.now, 0.5)
	}
	honest, _ := measure(newGCC(DefaultConfig(), start))
	hidden, queue := measure(newL4S(DefaultConfig(), start))
	atMost(t, "rate relative to GCC", hidden/honest, 1.05)
	atMost(t, "median queue", queue, 30*time.Millisecond)
}

// TestForgedMarks compares a receiver that reports marks that no queue made with an honest one beside a Prague flow: it
// gains nothing. If it forges all marks, packets leave as Not-ECT, and it has the rate of GCC.
func TestForgedMarks(t *testing.T) {
	measure := func(e Estimator, forges uint64) float64 {
		b := newBottleneck(t, 50, netem.NewDualPI2(l4sQueue))
		b.add(e, 7).forges = forges
		b.others = append(b.others, netem.NewPragueFlow(2, 10*time.Millisecond, start))
		b.run(4*time.Second, nil)
		return b.rate(1, 10*time.Second)
	}
	honest, gcc := measure(newL4S(DefaultConfig(), start), 0), measure(newGCC(DefaultConfig(), start), 0)
	for _, forges := range []uint64{20, 3} {
		atMost(t, fmt.Sprintf("rate with a mark of each packet %d, relative to an honest receiver", forges),
			measure(newL4S(DefaultConfig(), start), forges)/honest, 0.9)
	}
	atMost(t, "rate with all marks, relative to GCC", measure(newL4S(DefaultConfig(), start), 1)/gcc, 1.1)
}

// TestFallbackAfterAMarkedProbe lets a path that has marked a probe fall back to classic ECN. When the path is tested
// again, the mark of the probe says nothing: the first mark is still to come.
func TestFallbackAfterAMarkedProbe(t *testing.T) {
	l := newL4S(startingAt(8e6), start)
	f := &feed{estimator: l}
	mark := func(r *feedback.PacketResult) { r.ECN, r.SentECN = ecn.CE, ecn.ECT1 }
	keep := func(r *feedback.PacketResult) { r.ECN, r.SentECN = ecn.ECT1, ecn.ECT1 }
	f.run(100*time.Millisecond, time.Millisecond, keep)
	for probe, ok := l.Probe(start.Add(f.now)); ; probe, ok = l.Probe(start.Add(f.now)) {
		if ok {
			f.run(10*time.Millisecond, time.Millisecond, func(r *feedback.PacketResult) {
				mark(r)
				r.Probe = probe.ID
			})
			break
		}
		if f.now > 10*time.Second {
			t.Fatal("there was no probe")
		}
		f.run(10*time.Millisecond, time.Millisecond, keep)
		l.Step(start.Add(f.now))
	}
	if s := l.Stats(); s.L4S != L4SMarked || !s.ProbeMarked {
		t.Fatalf("after a marked probe the state is %v, probe marked %t", s.L4S, s.ProbeMarked)
	}
	reason, _ := l.ecn.fall(f.now, Classic)
	l.fallBack(f.now, reason)
	f.now += retryTime
	l.Step(start.Add(f.now))
	f.run(time.Second, time.Millisecond, keep)
	if s := l.Stats(); s.L4S != L4SCapable {
		t.Errorf("without marks the state is %v, expected %v", s.L4S, L4SCapable)
	}
}

// TestNewPath bleaches a path until packets leave as Not-ECT. An interruption follows, after which the path carries
// ECT: it is tested at once.
func TestNewPath(t *testing.T) {
	const outage, over = 3 * time.Second, 4500 * time.Millisecond
	b := newBottleneck(t, 50, netem.NewDualPI2(l4sQueue))
	b.meddle = func(p *netem.Packet) bool {
		if b.now < outage {
			p.ECN = ecn.NotECT
		}
		return b.now < outage || b.now >= over
	}
	s := b.add(newL4S(DefaultConfig(), start), 7)
	b.run(outage, nil)
	if stats := s.estimator.Stats(); stats.L4S != L4SFailed || stats.ECN != ecn.NotECT {
		t.Fatalf("%v and %v on the path that bleaches", stats.L4S, stats.ECN)
	}
	b.run(over+time.Second, nil)
	if stats := s.estimator.Stats(); stats.ECN != ecn.ECT1 || stats.L4S != L4SCapable && stats.L4S != L4SMarked {
		t.Errorf("%v and %v on the new path", stats.L4S, stats.ECN)
	}
}

// TestRetestIsSmooth tests a path again five minutes after each kind of fallback: frames leave smoothly, as at the
// start, and in longer ticks after ten seconds without a mark.
func TestRetestIsSmooth(t *testing.T) {
	keep := func(r *feedback.PacketResult) { r.ECN, r.SentECN = ecn.ECT1, ecn.ECT1 }
	for reason := Bleached; reason < Fallbacks; reason++ {
		l := newL4S(startingAt(8e6), start)
		f := &feed{estimator: l}
		f.run(time.Second, time.Millisecond, keep)
		l.burst.length = burstMost
		l.ecn.fall(f.now, reason)
		l.fallBack(f.now, reason)
		if s := l.Stats(); s.Smooth != (reason == Classic) || s.Unmarked {
			t.Errorf("%v: after the fallback smooth is %t, unmarked %t", reason, s.Smooth, s.Unmarked)
		}
		f.now += retryTime
		l.Step(start.Add(f.now))
		check := func(state L4SState, smooth bool) {
			if s := l.Stats(); s.L4S != state || s.Smooth != smooth || s.Unmarked == smooth {
				t.Errorf("%v: %v after the new test the state is %v, smooth %t, unmarked %t", reason,
					f.now-retryTime-time.Second, s.L4S, s.Smooth, s.Unmarked)
			}
		}
		check(L4STesting, true)
		if l.burst.length > 0 {
			t.Errorf("%v: bursts that the former path admitted are %v long", reason, l.burst.length)
		}
		f.run(9*time.Second, time.Millisecond, keep)
		check(L4SCapable, true)
		f.run(2*time.Second, time.Millisecond, keep)
		check(L4SCapable, false)
	}
}

// TestStateOfL4S checks the names for metrics, and the states of estimators before the first report.
func TestStateOfL4S(t *testing.T) {
	var states, reasons []string
	for state := L4SOff; state < L4SStates; state++ {
		states = append(states, state.String())
	}
	for reason := Bleached; reason < Fallbacks; reason++ {
		reasons = append(reasons, reason.String())
	}
	if want := []string{"off", "testing", "capable", "marked", "classic", "failed"}; !slices.Equal(states, want) {
		t.Errorf("states are %q, expected %q", states, want)
	}
	if want := []string{"bleached", "rewritten", "all_marked", "dropped", "classic"}; !slices.Equal(reasons, want) {
		t.Errorf("reasons are %q, expected %q", reasons, want)
	}
	for algorithm, want := range map[Algorithm]L4SState{GCC: L4SOff, L4S: L4STesting, Paper000: L4SMarked} {
		s := New(algorithm, DefaultConfig(), start).Stats()
		if s.L4S != want || (s.ECN == ecn.ECT1) != (want != L4SOff) || s.ECNFallbacks != [Fallbacks]uint64{} {
			t.Errorf("algorithm %d begins with %v, %v and fallbacks %v", algorithm, s.L4S, s.ECN, s.ECNFallbacks)
		}
	}
}

// TestRetry lets a path carry ECT again after a fallback, which is tested after five minutes.
func TestRetry(t *testing.T) {
	v := newECNValidation()
	now := time.Second
	for range 3 * validationPackets {
		v.arrived(now, &arrival{left: ecn.ECT1, ecn: ecn.NotECT}, 0)
	}
	if reason, ok := v.judge(now, 0); !ok || reason != Bleached {
		t.Fatalf("got %v, %v", reason, ok)
	}
	due, ok := v.due(0)
	if !ok || due != now+retryTime {
		t.Fatalf("due at %v, %v", due, ok)
	}
	if v.step(due-1, 0); v.state != L4SFailed || v.sending != ecn.NotECT {
		t.Fatalf("%v before the time", v.state)
	}
	if v.step(due, 0); v.state != L4STesting || v.sending != ecn.ECT1 {
		t.Fatalf("%v with %v at the time", v.state, v.sending)
	}
	v.arrived(due, &arrival{left: ecn.ECT1, ecn: ecn.ECT1}, 0)
	if _, fallback := v.judge(due, 0); fallback || v.state != L4SCapable || v.fallbacks[Bleached] != 1 {
		t.Fatalf("%v, fallbacks %v", v.state, v.fallbacks)
	}
}

// TestFalseMarks reports marks of packets that did not leave as ECT: they have no effect.
func TestFalseMarks(t *testing.T) {
	v := newECNValidation()
	for range 100 {
		if v.arrived(0, &arrival{left: ecn.NotECT, ecn: ecn.CE}, 0) {
			t.Fatal("a mark of a Not-ECT packet counts")
		}
	}
	if _, fallback := v.judge(time.Second, 0); fallback || v.state != L4STesting {
		t.Errorf("the state is %v", v.state)
	}
}

// TestFallbacks meddles with the codepoints of packets.
func TestFallbacks(t *testing.T) {
	for _, c := range []struct {
		name   string
		reason Fallback
		meddle func(p *netem.Packet) bool
	}{
		{"clear", Bleached, func(p *netem.Packet) bool { p.ECN = ecn.NotECT; return true }},
		{"ect0", Rewritten, func(p *netem.Packet) bool {
			if p.ECN == ecn.ECT1 {
				p.ECN = ecn.ECT0
			}
			return true
		}},
		{"mark", AllMarked, func(p *netem.Packet) bool {
			if p.ECN != ecn.NotECT {
				p.ECN = ecn.CE
			}
			return true
		}},
		{"drop", Dropped, func(p *netem.Packet) bool { return p.ECN == ecn.NotECT }},
	} {
		for _, later := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s later=%v", c.name, later), func(t *testing.T) {
				b := newBottleneck(t, 50, netem.NewDropTail(1<<20))
				begins := time.Duration(0)
				if later {
					begins = 3 * time.Second
				}
				b.meddle = func(p *netem.Packet) bool { return b.now < begins || c.meddle(p) }
				s := b.add(newL4S(DefaultConfig(), start), 7)
				found := time.Duration(-1)
				b.run(6*time.Second, func(now time.Duration) {
					if found < 0 && s.estimator.Stats().ECNFallbacks[c.reason] > 0 {
						found = now - begins
					}
				})
				if found < 0 {
					t.Fatalf("no fallback: %+v", s.estimator.Stats())
				}
				atMost(t, "time to the fallback", found, 500*time.Millisecond)
				stats := s.estimator.Stats()
				if stats.L4S != L4SFailed || stats.ECN != ecn.NotECT {
					t.Errorf("afterwards %v and %v", stats.L4S, stats.ECN)
				}
				used := b.rate(1, 12*time.Second)
				g := newBottleneck(t, 50, netem.NewDropTail(1<<20))
				g.add(newGCC(DefaultConfig(), start), 7)
				g.run(6*time.Second, nil)
				ofGCC := used / g.rate(1, 12*time.Second)
				atLeast(t, "rate relative to GCC", ofGCC, 0.95)
			})
		}
	}
}
