package client

import (
	"context"
	"testing"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestLimitsKeepInOrder: the limits of the downlink in messages to the server are valid.
func TestLimitsKeepInOrder(t *testing.T) {
	for _, test := range []struct {
		name        string
		start       volumetric.Bitrate
		most, least volumetric.Bitrate
		want        volumetric.Bitrate
	}{
		{"no start rate", 0, 5e6, 1e6, 0},
		{"a start rate alone", 8e6, 0, 0, 8e6},
		{"between the other two", 8e6, 20e6, 1e6, 8e6},
		{"above the largest", 8e6, 5e6, 0, 5e6},
		{"below the least", 8e6, 0, 12e6, 12e6},
		{"both the wrong way round", 8e6, 5e6, 6e6, 5e6},
	} {
		got := Config{StartBitrate: test.start}.limits(test.most, test.least)
		want := signal.BitrateLimits{Max: test.most, Min: test.least, Start: test.want}
		if got != want {
			t.Errorf("%s: got %+v, expected %+v", test.name, got, want)
		}
	}
}

// TestTheServerHearsOfTheDownlink on joining, with changed limits, and with the changed limits again after a resume.
func TestTheServerHearsOfTheDownlink(t *testing.T) {
	t.Parallel()
	heard, taken := make(chan signal.BitrateLimits, 3), make(chan struct{})
	url := playing(t, func(s *played) {
		heard <- s.admit(longEnough).BitrateLimits
		m := s.next()
		for ; m != nil; m = s.next() {
			if limits, ok := m.(*signal.SetLimits); ok {
				heard <- limits.BitrateLimits
				s.say(&signal.OK{Header: limits.Header})
				break
			}
		}
		// The websocket breaks once the client knows that its limits are accepted.
		select {
		case <-taken:
		case <-s.over:
		}
	}, func(s *played) {
		heard <- s.admit(longEnough).BitrateLimits
		s.listen()
	})
	ctx, cancel := context.WithTimeout(context.Background(), longEnough)
	defer cancel()
	s, err := Join(ctx, Config{URL: url, Room: "room", Identity: "ada", MaxBitrate: 50e6, StartBitrate: 10e6})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.lifetime.End(ErrClosed)
		_ = s.Close()
	})
	if err := s.SetLimits(ctx, 8e6, 1e6); err != nil {
		t.Fatal(err)
	}
	close(taken)
	for n, want := range []signal.BitrateLimits{{Max: 50e6, Start: 10e6}, {Max: 8e6, Min: 1e6, Start: 8e6},
		{Max: 8e6, Min: 1e6, Start: 8e6}} {
		select {
		case got := <-heard:
			if got != want {
				t.Errorf("message %d says %+v, expected %+v", n, got, want)
			}
		case <-ctx.Done():
			t.Fatal("the server was not told")
		}
	}
}
