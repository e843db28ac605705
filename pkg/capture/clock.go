package capture

import (
	"context"
	"time"
)

// Clock is the clock of a source. Tests pass a clock that they advance explicitly.
type Clock interface {
	Now() time.Time
	// Wait returns nil when the clock has reached the time, or the context's error if the context
	// ends before.
	Wait(ctx context.Context, until time.Time) error
}

// SystemClock is the clock of the computer.
type SystemClock struct{}

// Now returns time.Now.
func (SystemClock) Now() time.Time { return time.Now() }

// Wait waits for a timer, by the monotonic clock if the time contains its reading.
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
