package feedback

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/volsfu/volsfu/test/race"
)

const (
	shortest = 150 * time.Millisecond
	longest  = 250 * time.Millisecond
)

// TestParityShare checks the table in the documentation, and its edges.
func TestParityShare(t *testing.T) {
	tests := []struct {
		loss          float64
		rtt, deadline time.Duration
		want          float64
	}{
		{0.01, 20 * time.Millisecond, shortest, 0}, {0.05, 20 * time.Millisecond, shortest, 0},
		{0.1, 20 * time.Millisecond, shortest, 0},
		{0.01, 150 * time.Millisecond, longest, 0.02}, {0.05, 150 * time.Millisecond, longest, 0.07},
		{0.1, 150 * time.Millisecond, longest, 0.13},
		{0.01, 300 * time.Millisecond, longest, 0.05}, {0.05, 300 * time.Millisecond, longest, 0.11},
		{0.1, 300 * time.Millisecond, longest, 0.19},
		{0, 300 * time.Millisecond, longest, 0}, {-1, 300 * time.Millisecond, longest, 0},
		{math.NaN(), 300 * time.Millisecond, longest, 0},
		{0.5, 300 * time.Millisecond, longest, 0.25}, {1, time.Millisecond, longest, 0.25},
		{7, time.Millisecond, longest, 0.25},
		// The round trip is unknown, and there is no time.
		{0.05, 0, shortest, 0}, {0.01, time.Millisecond, 0, 0.05},
	}
	for _, test := range tests {
		if got := ParityShare(test.loss, test.rtt, test.deadline); got != test.want {
			t.Errorf("ParityShare(%v, %v, %v) = %v, expected %v", test.loss, test.rtt, test.deadline, got, test.want)
		}
	}
}

// TestParityShareGrows: more loss and a longer round trip never need less parity.
func TestParityShareGrows(t *testing.T) {
	for rtt := time.Duration(1); rtt < 300; rtt += 7 {
		before := 0.0
		for loss := 0.0; loss < 0.5; loss += 0.003 {
			share := ParityShare(loss, rtt*time.Millisecond, longest)
			if share < before {
				t.Errorf("at %d ms %v of loss takes %v, less loss takes %v", rtt, loss, share, before)
			}
			if longer := ParityShare(loss, (rtt+7)*time.Millisecond, longest); longer < share {
				t.Errorf("at %d ms %v of loss takes %v, 7 ms more take %v", rtt, loss, share, longer)
			}
			before = share
		}
	}
}

// TestJoinParity: two paths need the sum of both shares, up to the maximum that publishers make.
func TestJoinParity(t *testing.T) {
	for _, test := range []struct{ first, second, want float64 }{{0, 0, 0}, {0.07, 0, 0.07}, {0, 0.11, 0.11},
		{0.125, 0.0625, 0.1875}, {0.11, 0.19, 0.25}, {0.25, 0.25, 0.25}} {
		if got := JoinParity(test.first, test.second); got != test.want {
			t.Errorf("JoinParity(%v, %v) = %v, expected %v", test.first, test.second, got, test.want)
		}
	}
}

// TestUndecodable compares the formula with a simulation.
func TestUndecodable(t *testing.T) {
	race.SkipSequential(t)
	const frames = 200_000
	random := rand.New(rand.NewPCG(1, 2))
	for _, test := range []struct {
		loss                  float64
		tries, source, parity int
	}{
		{0.01, 0, 100, 2}, {0.05, 1, 100, 5}, {0.1, 1, 100, 13}, {0.2, 2, 20, 1}, {0.3, 3, 10, 0},
	} {
		failed := 0
		for range frames {
			missing := 0
			for range test.source + test.parity {
				if random.Float64() < test.loss {
					missing++
				}
			}
			for range test.tries {
				if random.Float64() < test.loss {
					continue
				}
				for range missing {
					if random.Float64() >= test.loss {
						missing--
					}
				}
			}
			if missing > test.parity {
				failed++
			}
		}
		want, got := undecodable(test.loss, test.tries, test.source, test.parity), float64(failed)/frames
		// Four standard deviations.
		if math.Abs(got-want) > 4*math.Sqrt(want/frames) {
			t.Errorf("%+v: %v of the frames cannot be decoded, expected %v", test, got, want)
		}
	}
}

func BenchmarkParityShare(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		ParityShare(0.1, 250*time.Millisecond, longest)
	}
}
