package testbed

import (
	"context"
	"fmt"
	"time"
)

// pollInterval is how often conditions are looked at.
const pollInterval = 5 * time.Millisecond

// Await waits until a condition holds. It looks once more when the context has ended: on a busy machine that may be
// long after the last look. The error names what was waited for.
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
