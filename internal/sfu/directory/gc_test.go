package directory

import (
	"slices"
	"testing"
)

// TestGCTrigger lets 500 participants leave one after the other. Collections become more frequent as fewer remain.
func TestGCTrigger(t *testing.T) {
	var c gcTrigger
	var at []int
	for remaining := 499; remaining >= 0; remaining-- {
		if c.left(remaining) {
			at = append(at, remaining)
		}
	}
	if want := []int{250, 125, 61}; !slices.Equal(at, want) {
		t.Errorf("collections with %v remaining, expected %v", at, want)
	}
}

// TestGCTriggerOfASmallRoom has participants join and leave.
func TestGCTriggerOfASmallRoom(t *testing.T) {
	var c gcTrigger
	collected := 0
	for range 640 {
		if c.left(3) {
			collected++
		}
	}
	if collected != 10 {
		t.Errorf("%d collections for 640 departures, expected one for each %d", collected, leastDepartures)
	}
}
