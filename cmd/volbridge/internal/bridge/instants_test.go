package bridge

import (
	"testing"
	"time"
)

func TestInstants(t *testing.T) {
	n := NewInstants(2)
	ms := func(d int64) uint64 { return uint64(start.UnixMilli() + d) }
	for i, step := range []struct {
		name   string
		track  int
		stamp  uint64
		number uint32
		after  time.Duration // time from capture to arrival
	}{
		{"first", 0, ms(0), 0, 0},
		{"other track of the same capture", 1, ms(0), 0, 0},
		{"next", 0, ms(33), 1, 33 * time.Millisecond},
		{"one further", 0, ms(66), 2, 66 * time.Millisecond},
		{"slow tile", 1, ms(33), 1, 33 * time.Millisecond},
		{"stamp stands still", 0, ms(66), 3, 67 * time.Millisecond},
		{"stamp goes back", 0, ms(50), 4, 68 * time.Millisecond},
		{"the same on the other track", 1, ms(50), 4, 68 * time.Millisecond},
		{"no stamp", 0, 0, 5, 100 * time.Millisecond},
		{"stamp of another clock", 1, 12345, 6, 101 * time.Millisecond},
		{"stamp beyond all times", 0, 1<<63 - 1, 7, 102 * time.Millisecond},
	} {
		number, capture := n.Next(step.track, step.stamp, start.Add(100*time.Millisecond))
		if number != step.number || capture.Sub(start) != step.after {
			t.Errorf("step %d, %s: number %d after %v, expected %d after %v", i, step.name, number, capture.Sub(start),
				step.number, step.after)
		}
	}
}

// TestInstantsDropsOldCaptures continues a track after a pause that is longer than instants are kept.
func TestInstantsDropsOldCaptures(t *testing.T) {
	n := NewInstants(2)
	now := start
	for i := range uint32(3 * keptInstants) {
		now = now.Add(time.Second / 30)
		if number, _ := n.Next(0, uint64(now.UnixMilli()), now); number != i {
			t.Fatalf("number %d, expected %d", number, i)
		}
	}
	if number, capture := n.Next(1, uint64(start.UnixMilli()), now); number != 3*keptInstants ||
		!capture.After(now.Add(-time.Millisecond)) {
		t.Errorf("a frame of a forgotten capture has number %d and is of %v", number, capture)
	}
}
