package vr2gather

import (
	"testing"
	"time"
)

// TestWhoAnswers: of what has happened by the time that it is looked at, the end counts before a sign of life, and
// that before the end of patience. 100 times each, since a choice among what is ready is random.
func TestWhoAnswers(t *testing.T) {
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
