package wait

import (
	"testing"
	"time"
)

// TestStalls adds delays and asks for the long ones.
func TestStalls(t *testing.T) {
	s, begin := &Stalls{}, time.Unix(1_800_000_000, 0)
	for _, ms := range []int{1, 300, 60, 400, 20} {
		s.add(Stall{begin, begin.Add(time.Duration(ms) * time.Millisecond)})
	}
	if got := s.Longest(); got != 400*time.Millisecond {
		t.Errorf("the longest is %v, expected 400 ms", got)
	}
	for ms, want := range map[int]int{0: 3, 60: 3, 61: 2, 1000: 0} {
		if got := s.From(time.Duration(ms) * time.Millisecond); len(got) != want {
			t.Errorf("%d stalls of %d ms or longer, expected %d", len(got), ms, want)
		}
	}
}
