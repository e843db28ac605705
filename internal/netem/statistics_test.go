package netem_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/test/race"
)

// TestCounts compares every random effect with exact counts, which follow from the seed, and with its distribution:
// three standard deviations around the mean.
func TestCounts(t *testing.T) {
	race.SkipSequential(t)
	const count = 100_000
	ms := time.Millisecond
	tests := []struct {
		name     string
		config   netem.Config
		counter  func(s netem.Stats) uint64
		expected uint64
		mean     float64 // share of packets
		variance float64 // of the count, per packet
	}{
		{"loss 1 %", with(func(c *netem.Config) { c.Loss = 0.01 }), func(s netem.Stats) uint64 { return s.LostRandom },
			1015, 0.01, 0.01 * 0.99},
		{"loss 50 %", with(func(c *netem.Config) { c.Loss = 0.5 }), func(s netem.Stats) uint64 { return s.LostRandom },
			50027, 0.5, 0.25},
		{"duplicate 3 %", with(func(c *netem.Config) { c.Duplicate = 0.03 }),
			func(s netem.Stats) uint64 { return s.Duplicated }, 3036, 0.03, 0.03 * 0.97},
		// A packet held back by 5 ms is overtaken by the next ones, which arrive every millisecond, unless all five are
		// held back, too.
		{"reorder 2 %", with(func(c *netem.Config) { c.Reorder, c.ReorderDelay = 0.02, 5*ms }),
			func(s netem.Stats) uint64 { return s.Reordered }, 1989, 0.02, 0.02 * 0.98},
		// Losses of a chain are correlated: the variance of the count is that of independent losses times (1 + λ) / (1
		// - λ), λ = 1 - p - r.
		{"burst 2 % in fives", with(func(c *netem.Config) { c.Burst = burstLoss(t, 0.02, 5) }),
			func(s netem.Stats) uint64 { return s.LostBurst }, 1733, 0.02, 0.02 * 0.98 * 9},
		// π = 0.01 / (0.01 + 0.09) = 0.1; mean loss = 0.1 × 0.5 + 0.9 × 0.001 = 0.0509; λ = 0.9. The variance is that
		// of independent losses plus 2 × π(1-π)(0.5 - 0.001)² × λ / (1 - λ) = 0.40.
		{"Gilbert–Elliott with four parameters", with(func(c *netem.Config) {
			c.Burst = netem.BurstConfig{Enter: 0.01, Leave: 0.09, LossBad: 0.5, LossGood: 0.001}
		}), func(s netem.Stats) uint64 { return s.LostBurst }, 4719, 0.0509, 0.0509*0.9491 + 0.4034},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			link := newLink(t, test.config, 1)
			run(link, count, 1200, ms)
			got := test.counter(link.Stats())
			if got != test.expected {
				t.Errorf("counted %d, expected %d for this seed", got, test.expected)
			}
			if deviation := math.Abs(float64(got)-count*test.mean) / math.Sqrt(count*test.variance); deviation > 3 {
				t.Errorf("counted %d, %.1f standard deviations from %g", got, deviation, count*test.mean)
			}
			checkConservation(t, link.Stats())
		})
	}
}

// checkConservation expects that no packet is in transit any more.
func checkConservation(t *testing.T, s netem.Stats) {
	t.Helper()
	if in, out := s.Sent+s.Duplicated, s.Delivered+s.DroppedECN+s.DroppedQueue+s.LostRandom+s.LostBurst; in != out {
		t.Errorf("%d packets sent and duplicated, %d accounted for: %+v", in, out, s)
	}
}

func TestBurstLengths(t *testing.T) {
	race.SkipSequential(t)
	for _, length := range []float64{1, 3, 10} {
		link := newLink(t, with(func(c *netem.Config) { c.Burst = burstLoss(t, 0.05, length) }), 2)
		const count = 200_000
		next, lost, bursts := uint64(0), uint64(0), 0
		for _, a := range append(run(link, count, 1200, time.Millisecond), arrival{number: count}) {
			if a.number > next {
				lost += a.number - next
				bursts++
			}
			next = a.number + 1
		}
		// The lengths are geometric with mean L and variance L(L-1).
		mean, tolerance := float64(lost)/float64(bursts), 3*math.Sqrt(length*(length-1)/float64(bursts))
		if math.Abs(mean-length) > tolerance {
			t.Errorf("%d losses in %d bursts: mean length %.3f, expected %g ± %.3f", lost, bursts, mean,
				length, tolerance)
		}
	}
}

func TestJitterDistributions(t *testing.T) {
	race.SkipSequential(t)
	const count, delay, jitter = 100_000, 50 * time.Millisecond, 5 * time.Millisecond
	tests := []struct {
		distribution      string
		deviation         float64 // standard deviation in units of jitter
		within, threshold float64 // share of packets whose deviation is within threshold × jitter
	}{
		{netem.JitterNormal, 1, 0.6827, 1},
		{netem.JitterNormal, 1, 0.9545, 2},
		{netem.JitterUniform, 1 / math.Sqrt(3), 0.5, 0.5},
		{netem.JitterUniform, 1 / math.Sqrt(3), 1, 1},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%s within %g", test.distribution, test.threshold), func(t *testing.T) {
			link := newLink(t, with(func(c *netem.Config) {
				c.Delay, c.Jitter, c.JitterDistribution, c.JitterReorders = delay, jitter, test.distribution, true
			}), 3)
			var sum, squares, within float64
			for _, a := range run(link, count, 1200, time.Millisecond) {
				d := float64(a.at-time.Duration(a.number)*time.Millisecond-delay) / float64(jitter)
				sum += d
				squares += d * d
				if math.Abs(d) <= test.threshold {
					within++
				}
			}
			mean, deviation := sum/count, math.Sqrt(squares/count)
			if math.Abs(mean) > 3*test.deviation/math.Sqrt(count) {
				t.Errorf("mean deviation %g × jitter, expected about 0", mean)
			}
			if math.Abs(deviation/test.deviation-1) > 0.01 {
				t.Errorf("standard deviation %g × jitter, expected %g", deviation, test.deviation)
			}
			if math.Abs(within/count-test.within) > 3*math.Sqrt(0.25/count) {
				t.Errorf("%g of the packets within %g × jitter, expected %g", within/count, test.threshold, test.within)
			}
			if s := link.Stats(); s.Reordered < count/2 {
				t.Errorf("%d reordered, expected more than half at this spacing", s.Reordered)
			}
		})
	}
}

func TestJitterKeepsOrderUnlessAllowed(t *testing.T) {
	link := newLink(t, with(func(c *netem.Config) { c.Delay, c.Jitter = 3*time.Millisecond, 5*time.Millisecond }), 4)
	got := run(link, 20_000, 1200, time.Millisecond)
	for i, a := range got {
		sent := time.Duration(a.number) * time.Millisecond
		if a.number != uint64(i) || a.at < sent || i > 0 && a.at < got[i-1].at {
			t.Fatalf("arrival %d is packet %d at %v, after %v: expected order, and no negative delay", i, a.number,
				a.at, got[max(i-1, 0)].at)
		}
	}
	if s := link.Stats(); s.Reordered != 0 || s.Delivered != 20_000 {
		t.Errorf("%d delivered, %d reordered; expected 20000 and 0", s.Delivered, s.Reordered)
	}
}

func TestHeldPacketsHoldUpNobody(t *testing.T) {
	link := newLink(t, with(func(c *netem.Config) {
		c.Delay, c.Reorder, c.ReorderDelay = 10*time.Millisecond, 0.1, 5*time.Millisecond
	}), 5)
	held := 0
	for _, a := range run(link, 1000, 1200, time.Millisecond) {
		switch latency := a.at - time.Duration(a.number)*time.Millisecond; latency {
		case 10 * time.Millisecond:
		case 15 * time.Millisecond:
			held++
		default:
			t.Fatalf("packet %d took %v, expected 10 or 15 ms", a.number, latency)
		}
	}
	if held < 70 || held > 130 {
		t.Errorf("%d packets held back, expected about 100", held)
	}
}
