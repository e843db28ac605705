package hotpath

import (
	"errors"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/payload"
)

func TestLoadIsValid(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Load)
		valid  bool
	}{
		{"the default", func(*Load) {}, true},
		{"all at once", func(l *Load) { l.Spread = 0 }, true},
		{"no receivers", func(l *Load) { l.Receivers = 0 }, true},
		{"no publishers", func(l *Load) { l.Publishers = 0 }, false},
		{"no tracks", func(l *Load) { l.Tracks = 0 }, false},
		{"more tracks than a publication has", func(l *Load) { l.UnwatchedTracks = 257 }, false},
		{"no quality", func(l *Load) { l.Qualities = 0 }, false},
		{"no frames", func(l *Load) { l.FrameRate = 0 }, false},
		{"empty frames", func(l *Load) { l.Mbps = 0 }, false},
		{"frames that are too large", func(l *Load) { l.Mbps = 20000 }, false},
		{"a spread beyond the interval", func(l *Load) { l.Spread = 1.1 }, false},
		{"everything lost", func(l *Load) { l.Loss = 1 }, false},
		{"negative round-trip time", func(l *Load) { l.RTT = -time.Second }, false},
		{"more publishers than participants", func(l *Load) { l.Together, l.Publishers = true, 11 }, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l := DefaultLoad()
			test.change(&l)
			if err := l.Validate(); (err == nil) != test.valid || err != nil && !errors.Is(err, ErrLoad) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestLoadInPackets(t *testing.T) {
	// 50 Mbit/s are 208,333 bytes per interval of 30 fps, 52,083 per track: 45.5 fragments.
	l := DefaultLoad()
	if l.frameBytes() != 52083 || l.packetsPerFrame() != 46 || l.every() != 1 {
		t.Errorf("%d bytes in %d packets, every %d; want 52,083 in 46, every one", l.frameBytes(), l.packetsPerFrame(),
			l.every())
	}
	// The last fragment has room for a stamp at every bit rate.
	for mbps := 0.1; mbps < 20; mbps += 0.0137 {
		l.Mbps = mbps
		if last := l.frameBytes() - (l.packetsPerFrame()-1)*payload.FragmentSize; last < stampBytes {
			t.Fatalf("%g Mbit/s: %d bytes in the last fragment", mbps, last)
		}
	}
	l.Mbps = 500
	if l.every() != 6 {
		t.Errorf("at 500 Mbit/s the times of one in %d packets are measured, want one in 6 of 54,720 per second",
			l.every())
	}
	l.Publishers, l.Receivers, l.Together = 3, 5, true
	for receiver, want := range []int{8, 8, 8, 12, 12} {
		if got := l.streams(receiver); got != want {
			t.Errorf("participant %d gets %d streams, want %d", receiver, got, want)
		}
	}
	if l.watchers() != 4 {
		t.Errorf("%d receivers watch each publisher, want 4", l.watchers())
	}
}

// TestWatchers checks watches against the number of streams per receiver and the number of receivers per publisher.
func TestWatchers(t *testing.T) {
	for _, l := range []Load{
		{Publishers: 10, Receivers: 15, Tracks: 45, Together: true},
		{Publishers: 10, Receivers: 10, Tracks: 45, Together: true},
		{Publishers: 2, Receivers: 3, Tracks: 4},
	} {
		watchers := make([]int, l.Publishers)
		for i := range l.Receivers {
			streams := 0
			for p := range l.Publishers {
				if l.watches(i, p) {
					streams += l.Tracks
					watchers[p]++
				}
			}
			if streams != l.streams(i) {
				t.Errorf("receiver %d of %+v takes %d streams, expected %d", i, l, streams, l.streams(i))
			}
		}
		for p, n := range watchers {
			if n != l.watchers() {
				t.Errorf("publisher %d of %+v has %d receivers, expected %d", p, l, n, l.watchers())
			}
		}
	}
}
