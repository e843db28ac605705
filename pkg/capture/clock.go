package capture

import (
	"context"
	"time"
)

// Clock is the time that a source lives in. Tests pass one that they move by hand.
type Clock interface {
	Now() time.Time
	// Wait returns nil once the clock has reached the time, or the context's error if that ends before.
	Wait(ctx context.Context, until time.Time) error
}

// SystemClock is the computer's clock.
type SystemClock struct{}

// Now is time.Now.
func (SystemClock) Now() time.Time { return time.Now() }

// Wait sleeps on a timer, by the monotonic clock where the time carries its reading.
func (SystemClock) Wait(ctx context.Context, until time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	remaining := time.Until(until)
	if remaining <= 0 {
		return nil
	}
	timer := time.NewTimer(remaining)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
