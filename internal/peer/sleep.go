package peer

import (
	"context"
	"time"
)

// SleepUntil waits until at. SleepUntil reports whether the time was reached before the context ended.
func SleepUntil(ctx context.Context, at time.Time) bool {
	wait := time.Until(at)
	if wait <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
