package control

import (
	"testing"
	"time"
)

// TestRange runs the two ends of the range of rates. A path of 1 Mbit/s is slower than the first estimate, so the first
// frames overflow its queue; no later frame is lost. A path of 1000 Mbit/s with a round trip of 250 ms has some 25,000
// packets in flight, and the history holds all of them until they are reported.
func TestRange(t *testing.T) {
	for _, c := range []struct {
		text    string
		seconds float64
		rtt     time.Duration
		settled time.Duration // no frame captured later is lost
	}{
		{"steady:1", 14, 20 * time.Millisecond, 2 * time.Second},
		{"steady:1000", 6, 250 * time.Millisecond, 0},
	} {
		t.Run(c.text, func(t *testing.T) {
			o := short(c.seconds)
			o.RTT = c.rtt
			s := run(t, c.text, o)
			r := s.Record().Result()
			if r.Utilisation < 0.85 || r.Queue.P95 > 30 {
				t.Errorf("utilisation %.3f, times in the queue %+v", r.Utilisation, r.Queue)
			}
			for key, frame := range s.flows[0].ledger.frames {
				if frame.complete == 0 && frame.captured >= c.settled {
					t.Errorf("the frame of tile %d that was captured after %v is lost", key.tile, frame.captured)
				}
			}
			if stats := s.flows[0].server.history.Stats(); stats.Unreported > 0 || stats.Unmatched > 0 {
				t.Errorf("packets were given up before they were reported: %+v", stats)
			}
		})
	}
}
