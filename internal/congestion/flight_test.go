package congestion

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
)

// TestFlight checks the window of a path with a round trip of 40 ms and reports every 50 ms, which does not change when
// reports end, and that L4S has none before the first mark.
func TestFlight(t *testing.T) {
	for _, algorithm := range []Algorithm{GCC, L4S} {
		e := New(algorithm, DefaultConfig(), start)
		now, number := start, int64(0)
		for range 20 {
			now = now.Add(50 * time.Millisecond)
			e.Sent(now.Add(-40*time.Millisecond), 1200)
			e.Report(now, []feedback.PacketResult{{Sequence: number, Size: 1200, Sent: now.Add(-40 * time.Millisecond),
				Arrived: now.Sub(start), Received: true}})
			number++
		}
		s := e.Stats()
		if algorithm == L4S {
			if s.Window != 0 {
				t.Errorf("L4S has a window of %d bytes", s.Window)
			}
			continue
		}
		length := 40*time.Millisecond + 50*time.Millisecond + flightFrame + DefaultConfig().Delay.QueueMax
		if want := windowOf(float64(s.Estimate), length); s.Window < want-1 || s.Window > want+1 {
			t.Errorf("the window is %d bytes, expected %d", s.Window, want)
		}
	}
	f := flight{}
	for i := range 3 {
		f.reported(time.Duration(i+1) * time.Minute)
	}
	if f.interval != flightMost {
		t.Errorf("the interval is %v, expected %v", f.interval, flightMost)
	}
}
