package edge

import "testing"

// TestNextDivisor checks that the samples stay below the limit at any rate of packets that the divisor can reduce, and
// that the divisor comes to rest.
func TestNextDivisor(t *testing.T) {
	for _, packets := range []float64{0, 50, 999, 1001, 4000, 4001, 33_000, 200_000, 500_000, 5_000_000} {
		divisor := uint32(1)
		for range 20 {
			divisor = nextDivisor(divisor, packets/float64(divisor))
		}
		for range 5 {
			next := nextDivisor(divisor, packets/float64(divisor))
			if next != divisor {
				t.Errorf("at %v packets/s, the divisor alternates between %d and %d", packets, divisor, next)
			}
			divisor = next
		}
		if rate := packets / float64(divisor); rate > maxSamples && divisor < maxDivisor {
			t.Errorf("at %v packets/s and a divisor of %d there are %v samples/s", packets, divisor, rate)
		}
	}
}
