package congestion

import (
	"testing"
	"time"
)

// TestSentBytes compares the bins with a list of all packets.
func TestSentBytes(t *testing.T) {
	var s sentBytes
	var sizes [3000]int // by millisecond
	for ms := 0; ms < len(sizes); ms += 1 + ms%7 {
		if ms > 1000 && ms < 1900 {
			continue // older than the oldest bin
		}
		sizes[ms] = 100 + ms%1300
		s.add(duration(float64(ms)), sizes[ms])
		for _, back := range []int{0, 30, 200, 500} {
			after := max(ms/10*10-back, 0)
			want := 0
			for at := after + 10; at <= ms; at++ {
				want += sizes[at]
			}
			if got := s.since(duration(float64(ms)), duration(float64(after))); got != want {
				t.Fatalf("at %d ms %d bytes since %d ms, expected %d", ms, got, after, want)
			}
		}
	}
	if got := s.since(time.Hour, 0); got != 0 {
		t.Errorf("%d bytes after an hour, expected none", got)
	}
}
