// Package wait has tests wait for what happens on other goroutines, or in other processes.
package wait

import (
	"testing"
	"time"
)

// Patience is how long a test waits for what should come in a fraction of a second; loaded machines take their time.
const Patience = 60 * time.Second

// interval is how often conditions are looked at.
const interval = 5 * time.Millisecond

// Until waits until a condition holds, and fails the test where that takes too long. What says what was waited for.
func Until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(Patience)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting until %s", what)
		}
		time.Sleep(interval)
	}
}
