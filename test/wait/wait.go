// Package wait lets tests wait for conditions that other goroutines or processes establish.
package wait

import (
	"testing"
	"time"
)

// Patience limits the wait for an event that usually takes a fraction of a second; busy machines take longer.
const Patience = 60 * time.Second

// interval is the time between two checks of a condition.
const interval = 5 * time.Millisecond

// Until waits until a condition holds and fails the test on a timeout. The parameter what describes the condition.
func Until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	if !For(Patience, condition) {
		t.Fatalf("timed out waiting: %s", what)
	}
}

// For waits until a condition holds, at most for the given time, and reports whether the condition holds.
func For(limit time.Duration, condition func() bool) bool {
	for deadline := time.Now().Add(limit); !condition(); time.Sleep(interval) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}
