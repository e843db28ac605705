package netem_test

import (
	"math"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/test/allocations"
	"github.com/volsfu/volsfu/test/race"
)

// lowLatency collects the waiting times of the packets of L4S flows.
func (b *bottleneck) lowLatency() *netem.DelayCounts {
	waited := new(netem.DelayCounts)
	b.arrived = func(p *netem.Packet) {
		if p.Offered() == ecn.ECT1 {
			waited.Add(p.Waited)
		}
	}
	return waited
}

// TestPragueAloneFillsTheLink: the queue is short and the link is used. The slow start exceeds the rate for a round
// trip once, until the first mark is known. At 10 Mbit/s a segment takes 1.2 ms. DualPI2 does not mark a packet unless
// two more wait behind it, which takes 2.4 ms, and until the mark is known the window grows twice by a segment.
func TestPragueAloneFillsTheLink(t *testing.T) {
	race.SkipSequential(t)
	for mbps, bound := range map[int]time.Duration{10: 5 * time.Millisecond, 50: 2 * time.Millisecond,
		100: 2 * time.Millisecond, 300: 2 * time.Millisecond} {
		b := newBottleneck(t, dumbbell(mbps*1e6, netem.QueueDualPI2, 10))
		start := b.lowLatency()
		f := b.addPrague(10*time.Millisecond, 0)
		b.run(5 * second)
		waited := b.lowLatency()
		utilisation := b.measure(15*second, 30*second)[0] / float64(mbps*1e6)
		p99, s := waited.Quantile(0.99), f.Stats()
		t.Logf("%d Mbit/s: utilisation %.3f, queue p50 %v, p99 %v, max %v, %v in the first 5 s; %+v", mbps, utilisation,
			waited.Quantile(0.5), p99, waited.Quantile(1), start.Quantile(1), s)
		if utilisation < 0.95 || p99 > bound || start.Quantile(1) > 25*time.Millisecond {
			t.Errorf("utilisation %.3f of %d Mbit/s with a queue of %v (p99), %v in the first 5 s; "+
				"expected 0.95, %v and 25 ms",
				utilisation, mbps, p99, start.Quantile(1), bound)
		}
		if s.Lost > 0 || s.LossReductions > 0 || s.Marked == 0 {
			t.Errorf("%+v, expected marks without a loss", s)
		}
	}
}

// TestPragueFlowsShare: flows that begin at different times and have different round trips below the virtual one get
// equal rates.
func TestPragueFlowsShare(t *testing.T) {
	race.SkipSequential(t)
	for _, back := range [][]time.Duration{{10, 10}, {10, 10, 10}, {5, 14}} {
		b := newBottleneck(t, dumbbell(100e6, netem.QueueDualPI2, 10))
		waited := b.lowLatency()
		for i, delay := range back {
			b.addPrague(delay*time.Millisecond, time.Duration(i)*second)
		}
		rates := b.measure(20*second, 50*second)
		index, utilisation, p99 := jain(rates), sum(rates)/100e6, waited.Quantile(0.99)
		t.Logf("back %v: rates %.3g, Jain's index %.4f, utilisation %.3f, queue p99 %v", back, rates, index,
			utilisation, p99)
		if index < 0.98 || utilisation < 0.95 || p99 > 2*time.Millisecond {
			t.Errorf("rates %.3g with acknowledgements after %d ms: Jain's index %.4f, utilisation %.3f, "+
				"queue %v (p99); expected 0.98, 0.95 and 2 ms", rates, back, index, utilisation, p99)
		}
	}
}

// TestPragueBesideCubic: DualPI2's coupling gives Prague and Cubic, with or without classic ECN, similar rates, and
// Prague's queue stays short.
func TestPragueBesideCubic(t *testing.T) {
	race.SkipSequential(t)
	for _, test := range []struct {
		mbps int
		ecn  bool
	}{{40, false}, {100, false}, {40, true}} {
		b := newBottleneck(t, dumbbell(test.mbps*1e6, netem.QueueDualPI2, 10))
		waited := b.lowLatency()
		b.addPrague(10*time.Millisecond, 0)
		cubic := netem.NewCubicFlow
		if test.ecn {
			cubic = netem.NewECNCubicFlow
		}
		b.flows = append(b.flows, cubic(b.number(), 10*time.Millisecond, epoch))
		rates := b.measure(20*second, 80*second)
		ratio, p99 := rates[0]/rates[1], waited.Quantile(0.99)
		t.Logf("%d Mbit/s, classic ECN %v: rates %.3g, ratio %.2f, queue p99 %v", test.mbps, test.ecn, rates, ratio,
			p99)
		if ratio < 0.5 || ratio > 2 || p99 > 2*time.Millisecond {
			t.Errorf("Prague has %.3g and Cubic %.3g bit/s with a queue of %v (p99), "+
				"expected a ratio of 0.5 to 2 and 2 ms",
				rates[0], rates[1], p99)
		}
	}
}

// TestECNCubicIsMarked: CoDel marks the packets of a Cubic flow with classic ECN, which loses none, and the flow uses
// the link.
func TestECNCubicIsMarked(t *testing.T) {
	b := newBottleneck(t, dumbbell(50e6, netem.QueueCoDel, 20))
	f := netem.NewECNCubicFlow(1, 10*time.Millisecond, epoch)
	b.flows = append(b.flows, f)
	utilisation := b.measure(0, 20*second)[0] / 50e6
	if s, link := f.Stats(), b.link.Stats(); s.Lost > 0 || s.Marked != link.Marked || s.Reductions == 0 ||
		s.Reductions > s.Marked || utilisation < 0.95 {
		t.Errorf("utilisation %.3f, %+v with %d packets marked, expected reductions by marks alone and 0.95",
			utilisation, s, link.Marked)
	}
}

func TestPragueFlowLivesThroughAnOutage(t *testing.T) {
	race.SkipSequential(t)
	b := newBottleneck(t, dumbbell(100e6, netem.QueueDualPI2, 10))
	setRate(t, b.link, netem.RateTrace{
		Steps: []netem.RateStep{{0, 100e6}, {15 * second, 0}, {18 * second, 100e6}}, Duration: 40 * second,
	}, epoch)
	f := b.addPrague(10*time.Millisecond, 0)
	before, during, after := b.measure(10*second, 15*second)[0], b.measure(15100*time.Millisecond, 18*second)[0],
		b.measure(25*second, 30*second)[0]
	if before < 95e6 || during != 0 || after < 95e6 || f.Stats().Timeouts == 0 {
		t.Errorf("%.3g bit/s before, %.3g in and %.3g 7 s after an outage, %+v; expected 95e6, 0 and 95e6", before,
			during, after, f.Stats())
	}
}

func TestPragueFlowDoesNotAllocate(t *testing.T) {
	b := newBottleneck(t, dumbbell(50e6, netem.QueueDualPI2, 10))
	b.addPrague(10*time.Millisecond, 0)
	b.run(5 * second)
	end := 5 * second
	if n := allocations.PerCall(5, func() {
		end += second
		b.run(end)
	}); n > 2 {
		t.Errorf("%g allocations per second, expected none", n)
	}
}

// segments drives a Prague sender without a link: every segment is acknowledged after rtt, marked as mark says, or lost
// as lose says.
type segments struct {
	sender *netem.Prague
	rtt    time.Duration
	now    time.Time
	mark   func(number uint64) bool
	lose   func(number uint64) bool
	acks   []pipeSegment
	sent   []time.Time
}

// run steps the sender until end and calls each after every acknowledgement.
func (p *segments) run(end time.Duration, each func(elapsed time.Duration, s netem.PragueStats)) {
	for p.now = epoch; !p.now.After(at(end)); {
		for len(p.acks) > 0 && !p.acks[0].at.After(p.now) {
			number := p.acks[0].number
			p.sender.Acknowledge(number, p.mark != nil && p.mark(number), p.now)
			p.acks = p.acks[1:]
			each(p.now.Sub(epoch), p.sender.Stats())
		}
		p.sender.Expire(p.now)
		for number, ok := p.sender.Send(p.now); ok; number, ok = p.sender.Send(p.now) {
			p.sent = append(p.sent, p.now)
			if p.lose == nil || !p.lose(number) {
				p.acks = append(p.acks, pipeSegment{number, p.now.Add(p.rtt)})
			}
		}
		p.now = p.sender.Next()
		if len(p.acks) > 0 && p.acks[0].at.Before(p.now) {
			p.now = p.acks[0].at
		}
	}
}

// TestPragueGrowsByVirtualRoundTrips: after slow start the rate grows by one segment per virtual round trip within a
// virtual round trip, 1,500 × 8 / 25 ms = 480 kbit/s, 40 times a second, whatever the round trip is; above 25 ms the
// virtual round trip is the round trip.
func TestPragueGrowsByVirtualRoundTrips(t *testing.T) {
	for _, rtt := range []time.Duration{5 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond} {
		virtual := max(rtt, netem.PragueVirtualRTT).Seconds()
		p := &segments{sender: netem.NewPrague(), rtt: rtt, mark: func(number uint64) bool { return number == 300 }}
		rates := map[int]float64{} // by tenths of a second
		p.run(3*second, func(elapsed time.Duration, s netem.PragueStats) {
			rates[int(elapsed/(100*time.Millisecond))] = s.RateBPS
		})
		grown, expected := (rates[28] - rates[18]), netem.SegmentBytes*8/virtual/virtual
		t.Logf("%v: %.3g bit/s per second, expected %.3g", rtt, grown, expected)
		if math.Abs(grown/expected-1) > 0.05 {
			t.Errorf("with a round trip of %v the rate grows by %.4g bit/s per second, expected %.4g", rtt, grown,
				expected)
		}
	}
}

// TestPragueResponds: the first mark halves the rate, because α is 1. Later α follows the share of marks, and marks
// reduce the rate by α/2 at most once per virtual round trip. Losses halve the rate once per round trip.
func TestPragueResponds(t *testing.T) {
	t.Run("marks", func(t *testing.T) {
		// One segment in eight is marked from number 300 on.
		p := &segments{sender: netem.NewPrague(), rtt: 20 * time.Millisecond,
			mark: func(number uint64) bool { return number >= 300 && number%8 == 0 }}
		var last netem.PragueStats
		var reduced time.Duration
		p.run(10*second, func(elapsed time.Duration, s netem.PragueStats) {
			if s.MarkReductions != last.MarkReductions {
				if s.MarkReductions == 1 && math.Abs(s.RateBPS/last.RateBPS-0.5) > 0.01 {
					t.Errorf("the first mark leaves %.3f of the rate, expected half", s.RateBPS/last.RateBPS)
				}
				if s.MarkReductions > 1 && elapsed-reduced < netem.PragueVirtualRTT {
					t.Errorf("a reduction %v after another, expected 25 ms at least", elapsed-reduced)
				}
				if expected := 1 - s.Alpha/2; math.Abs(s.RateBPS/last.RateBPS-expected) > 0.01 && s.RateBPS > 1e6 {
					t.Errorf("a mark with α = %.3f leaves %.3f of the rate, expected %.3f", s.Alpha,
						s.RateBPS/last.RateBPS, expected)
				}
				reduced = elapsed
			}
			last = s
		})
		// In equilibrium α / 2 × window is the growth per virtual round trip, 1 - α: 14 segments.
		if math.Abs(last.Alpha-0.125) > 0.03 || math.Abs(last.RateBPS-14*480e3) > 1.5e6 {
			t.Errorf("α is %.3f at %.3g bit/s, expected 0.125 and 6.7e6", last.Alpha, last.RateBPS)
		}
	})
	t.Run("losses", func(t *testing.T) {
		p := &segments{sender: netem.NewPrague(), rtt: 20 * time.Millisecond,
			lose: func(number uint64) bool { return number >= 300 && number < 320 || number == 3000 }}
		var last netem.PragueStats
		p.run(5*second, func(_ time.Duration, s netem.PragueStats) {
			if s.LossReductions != last.LossReductions && math.Abs(s.RateBPS/last.RateBPS-0.5) > 0.05 {
				t.Errorf("a loss leaves %.3f of the rate, expected half", s.RateBPS/last.RateBPS)
			}
			last = s
		})
		if last.Lost != 21 || last.LossReductions != 2 || last.Timeouts != 0 {
			t.Errorf("%+v, expected 21 losses in two round trips", last)
		}
	})
}

// TestPragueIsPaced: segments leave in bursts of at most 250 µs of the rate.
func TestPragueIsPaced(t *testing.T) {
	p := &segments{sender: netem.NewPrague(), rtt: 20 * time.Millisecond,
		mark: func(number uint64) bool { return number == 1000 }}
	var rate float64
	p.run(2*second, func(_ time.Duration, s netem.PragueStats) { rate = s.RateBPS })
	largest, burst := 0, 0
	last := p.sent[len(p.sent)-5000:]
	for i := range last {
		if i > 0 && last[i].Equal(last[i-1]) {
			burst++
		} else {
			burst = 1
		}
		largest = max(largest, burst)
	}
	if limit := int(rate * netem.PragueBurst.Seconds() / 8 / netem.SegmentBytes); largest > limit || limit < 2 {
		t.Errorf("%d segments left at once at %.3g bit/s, expected at most %d", largest, rate, limit)
	}
}
