package allocations

import (
	"testing"
)

var kept []byte

// TestPerCall: allocations of single calls do not count, and those of every call do.
func TestPerCall(t *testing.T) {
	calls := 0
	for _, c := range []struct {
		first, each int
		want        float64
	}{{0, 0, 0}, {100, 0, 0}, {0, 2, 2}, {100, 1, 1}} {
		calls = 0
		if got := PerCall(10, func() {
			calls++
			n := c.each
			// AllocsPerRun does not count the first call.
			if calls == 2 {
				n += c.first
			}
			for range n {
				kept = make([]byte, 64)
			}
		}); got != c.want {
			t.Errorf("%g allocations per call with %d in each and %d more in one, expected %g", got, c.each, c.first,
				c.want)
		}
	}
}
