package capture

import (
	"context"
	"errors"
	"testing"
	"time"
)

// handClock is a clock that advances only when it is waited on or set.
type handClock struct{ now time.Time }

func newHandClock() *handClock { return &handClock{now: time.Unix(1_700_000_000, 0)} }

func (c *handClock) Now() time.Time { return c.now }

func (c *handClock) Wait(ctx context.Context, until time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if until.After(c.now) {
		c.now = until
	}
	return nil
}

func TestSystemClockWaits(t *testing.T) {
	clock := SystemClock{}
	until := clock.Now().Add(5 * time.Millisecond)
	if err := clock.Wait(t.Context(), until); err != nil {
		t.Fatal(err)
	}
	if now := clock.Now(); now.Before(until) {
		t.Errorf("Wait returned %v early", until.Sub(now))
	}
	if err := clock.Wait(t.Context(), until); err != nil {
		t.Errorf("Wait for a time that is past: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(5*time.Millisecond, cancel)
	if err := clock.Wait(ctx, clock.Now().Add(time.Hour)); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait while its context ends: got %v, expected %v", err, context.Canceled)
	}
	if err := clock.Wait(ctx, until); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait with an ended context: got %v, expected %v", err, context.Canceled)
	}
}
