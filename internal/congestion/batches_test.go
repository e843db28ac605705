package congestion

import (
	"testing"
	"time"
)

// arriving is a path of 100 Mbit/s with packets of 1,250 bytes, one in 0.1 ms, which delivers packets at fixed
// intervals, except between two times.
type arriving struct {
	every, from, to time.Duration
}

// hand delivers the packets that the path carries from begin to end.
func (p arriving) hand(b *batches, begin, end time.Duration) {
	for at := begin; at < end; at += 100 * time.Microsecond {
		seen := at
		if p.every > 0 {
			seen = (at/p.every + 1) * p.every
		}
		if seen > p.from && seen < p.to {
			seen = p.to
		}
		b.add(seen, 1250)
	}
}

func TestBatches(t *testing.T) {
	const frame = 100 * time.Millisecond / 3
	for name, c := range map[string]struct {
		path  arriving
		frame time.Duration // transmission time of a frame's packets
		want  float64       // Mbit/s
	}{
		"one by one": {frame: 20 * time.Millisecond, want: 100},
		"every millisecond": {path: arriving{every: time.Millisecond}, frame: 20 * time.Millisecond,
			want: 100},
		"a host that stood still": {path: arriving{every: time.Millisecond, from: 701 * time.Millisecond,
			to: 707 * time.Millisecond}, frame: 20 * time.Millisecond, want: 100},
		"batches with long gaps":       {path: arriving{every: 5 * time.Millisecond}, frame: 20 * time.Millisecond},
		"frames shorter than a window": {frame: 8 * time.Millisecond},
	} {
		var b batches
		for n := range time.Duration(30) {
			c.path.hand(&b, n*frame, n*frame+c.frame)
		}
		if got := b.rate() / 1e6; got < 0.98*c.want || got > 1.02*c.want {
			t.Errorf("%s: bursts arrive at %.1f Mbit/s, expected %v", name, got, c.want)
		}
	}
}

// TestUsualBursts has a path that holds packets for 10 ms once, and catches up at twice the rate: the highest rate
// shows it, the mean hardly.
func TestUsualBursts(t *testing.T) {
	const (
		frame  = 100 * time.Millisecond / 3
		packet = 100 * time.Microsecond
	)
	var a acknowledged
	for n := range time.Duration(30) {
		for i := range time.Duration(300) {
			at := n*frame + i*packet
			if n == 25 && i >= 50 {
				at = n*frame + 15*time.Millisecond + (i-50)*packet/2
			}
			a.add(at, at, 1250)
		}
	}
	if got := a.bursts() / 1e6; got < 180 {
		t.Errorf("the highest rate is %.1f Mbit/s, expected 180 and more", got)
	}
	if got := a.usual() / 1e6; got < 99 || got > 113 {
		t.Errorf("the usual rate is %.1f Mbit/s, expected 99 to 113", got)
	}
}

// TestBatchesOfThePast: when batches are no longer contiguous, their rate is forgotten.
func TestBatchesOfThePast(t *testing.T) {
	var a acknowledged
	for at := time.Duration(0); at < 400*time.Millisecond; at += 100 * time.Microsecond {
		a.add(at, at, 1250)
	}
	for at := 400 * time.Millisecond; at < 2*time.Second; at += 4 * time.Millisecond {
		a.add(at, at, 1250)
	}
	if got := a.bursts() / 1e6; got > 3 {
		t.Errorf("bursts arrive at %.1f Mbit/s, expected 3 at most", got)
	}
	if got := a.usual() / 1e6; got > 3 {
		t.Errorf("bursts usually arrive at %.1f Mbit/s, expected 3 at most", got)
	}
}
