package stream

import (
	"testing"
	"time"
)

// TestFramesLead: frames are sent ahead of their schedule if little of the estimate is used. The test sends little and
// much of the largest estimate, which is also the initial estimate.
func TestFramesLead(t *testing.T) {
	const most, interval = 40e6, time.Second / 30
	config := estimating(most)
	config.Congestion.Max = most
	l := newLoop(t, "rate=200Mbit,delay=10ms", 10*time.Millisecond, config)
	send := func(rate float64, d time.Duration) {
		for end := l.now.Add(d); l.now.Before(end); {
			l.frame(int(rate / 8 / 30))
			l.pass(interval)
		}
	}
	// Frames of 8 Mbit/s take 6.7 ms at the estimate, and 13.3 ms by their schedule without the last tick.
	expect := func(what string, leads bool) {
		t.Helper()
		send(8e6, interval)
		d := l.left[l.number]
		if took := d.Last.Sub(d.First); (took < 9*time.Millisecond) != leads || l.sender.Estimate() != most {
			t.Errorf("%s: a frame left within %v with an estimate of %v, expected that it leads: %v", what, took,
				l.sender.Estimate(), leads)
		}
	}
	send(8e6, 200*time.Millisecond)
	expect("before the use is known", false)
	send(8e6, 2*time.Second)
	expect("8 of 40 Mbit/s", true)
	send(36e6, time.Second)
	expect("36 of 40 Mbit/s", false)
	send(8e6, 2*time.Second)
	expect("8 of 40 Mbit/s again", true)
}
