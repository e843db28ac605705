package wallclock

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 0, "50ms": 50 * time.Millisecond, "-1.5s": -1500 *
		time.Millisecond} {
		if got, err := parse(text); got != want || err != nil {
			t.Errorf("%q: got %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"50", "soon", "2000h"} {
		if _, err := parse(text); err == nil {
			t.Errorf("%q: expected an error", text)
		}
	}
}

// TestShifted: a shifted clock differs from the system's clock by the offset, and waits as long.
func TestShifted(t *testing.T) {
	shift = time.Hour
	defer func() { shift = 0 }()
	now := Now()
	if got := time.Until(now); got > time.Hour || got < time.Hour-time.Minute {
		t.Errorf("the clock is %v ahead, want an hour", got)
	}
	begun := time.Now()
	err := (Clock{}).Wait(t.Context(), now.Add(20*time.Millisecond))
	if err != nil || time.Since(begun) > time.Minute || Now().Before(now.Add(20*time.Millisecond)) {
		t.Errorf("waited %v, %v, want 20 ms", time.Since(begun), err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := (Clock{}).Wait(ended, Now().Add(time.Hour)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
}
