package testbed

import (
	"context"
	"errors"
	"testing"
)

// TestAwaitAfterTheContext: a condition that holds when the context has ended counts.
func TestAwaitAfterTheContext(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		looks := 0
		if err := Await(over, "it is looked at twice", func() bool { looks++; return looks > 1 }); err != nil {
			t.Fatal(err)
		}
	}
	if err := Await(over, "nothing", func() bool { return false }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}
