package fidelity

import (
	"testing"
	"time"
)

// TestModel sends three packets of 1,250 bytes over 1 Mbit/s (10 ms each) with 5 ms of delay: two at once, and one when
// the link is idle.
func TestModel(t *testing.T) {
	const ms = int64(time.Millisecond)
	m := model{rate: 1_000_000, delay: 5 * time.Millisecond}
	for i, test := range []struct{ before, after, early, late int64 }{{0, ms, 15, 16}, {0, ms, 25, 26},
		{50 * ms, 50 * ms, 65, 65}} {
		if early, late := m.arrival(1250, test.before, test.after); early != test.early*ms || late != test.late*ms {
			t.Errorf("packet %d: %d to %d ns, expected %d to %d ms", i, early, late, test.early, test.late)
		}
	}
}

func TestDeviation(t *testing.T) {
	for at, expected := range map[int64]time.Duration{5: 5, 10: 0, 15: 0, 20: 0, 22: 2} {
		if got := deviation(at, 10, 20); got != expected {
			t.Errorf("%d: %v, expected %v", at, got, expected)
		}
	}
}

// TestBinomialInterval compares with quantiles computed in another way, by the logarithm of the gamma function.
func TestBinomialInterval(t *testing.T) {
	for _, test := range []struct {
		n         int
		p         float64
		low, high int
	}{{100, 0.5, 37, 63}, {10_000, 0.001, 3, 19}, {10_000, 0.01, 75, 127}, {10_000, 0.1, 923, 1078}, {1, 0.5, 0, 1}} {
		if low, high := binomialInterval(test.n, test.p); low != test.low || high != test.high {
			t.Errorf("%d trials of %v: %d to %d, expected %d to %d", test.n, test.p, low, high, test.low, test.high)
		}
	}
}
