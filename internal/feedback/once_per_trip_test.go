package feedback

import (
	"testing"
	"time"
)

// TestOncePerTrip requests a packet whose answers are all lost: one request per round trip and margin, until the
// deadline.
func TestOncePerTrip(t *testing.T) {
	cfg := DefaultConfig().NACK
	cfg.OncePerTrip = true
	const trip = 20 * time.Millisecond
	g := NewNACKGenerator(cfg)
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, number := range []int64{1, 3, 4, 5, 6} {
		g.Received(number, start)
	}
	var asked []time.Duration
	var gone []int64
	for at := time.Duration(0); at <= time.Second; at += time.Millisecond {
		ask, lost := g.Due(start.Add(at), trip, nil, nil)
		gone = append(gone, lost...)
		if len(ask) > 0 {
			asked = append(asked, at)
		}
	}
	for i, at := range asked {
		if want := time.Duration(i) * (trip + tripMargin); at != want {
			t.Errorf("request %d after %v, expected %v", i+1, at, want)
		}
	}
	if len(asked) != 5 || len(gone) != 1 {
		t.Errorf("%d requests and %d packets given up, expected 5 and 1", len(asked), len(gone))
	}
}
