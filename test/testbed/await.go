package testbed

import (
	"context"
	"fmt"
	"time"
)

// pollInterval is the time between two evaluations of a condition.
const pollInterval = 5 * time.Millisecond

// Await waits until a condition holds. When the context has ended, the condition is evaluated once more: on a busy
// machine the last evaluation may be long ago. The error contains the name of the condition.
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
