package vr2gather

import (
	"testing"
	"time"
)

// TestPresencePriorities checks the priority of simultaneous events: the end of the connection, then a sign of life,
// then the end of the time. Each case runs 100 times, because select chooses a ready channel at random.
func TestPresencePriorities(t *testing.T) {
	yes, no := make(chan struct{}), make(chan struct{})
	close(yes)
	over := make(chan time.Time)
	close(over)
	for _, test := range []struct {
		name       string
		sign, gone <-chan struct{}
		late       <-chan time.Time
		answers    bool
	}{
		{"answered in time", yes, no, nil, true},
		{"answered, and looked at late", yes, no, over, true},
		{"answered, and gone since", yes, yes, nil, false},
		{"gone", no, yes, over, false},
		{"silent", no, no, over, false},
	} {
		for range 100 {
			if got := answered(test.sign, test.gone, test.late); got != test.answers {
				t.Fatalf("%s: got %v", test.name, got)
			}
		}
	}
}
