package lab

import (
	"context"
	"fmt"
	"time"
)

// pollInterval is how often conditions are looked at.
const pollInterval = 5 * time.Millisecond

// Await waits until a condition holds. It is looked at once more when the context has ended: on a busy machine that may be long after the last time. The error names what was
// waited for.
func Await(ctx context.Context, what string, condition func() bool) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for !condition() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			if condition() {
				return nil
			}
			return fmt.Errorf("waiting until %s: %w", what, ctx.Err())
		}
	}
	return nil
}

// Pause waits for a time, or until the context ends.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
