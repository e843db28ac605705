package sfu

import (
	"slices"
	"testing"
)

// TestDepartures has 500 participants leave one after the other: collections come closer as fewer remain.
func TestDepartures(t *testing.T) {
	var d departures
	var at []int
	for remaining := 499; remaining >= 0; remaining-- {
		if d.add(remaining) {
			at = append(at, remaining)
		}
	}
	if want := []int{250, 125, 61}; !slices.Equal(at, want) {
		t.Errorf("collections with %v remaining, expected %v", at, want)
	}
}

// TestDeparturesFromASmallRoom has participants come and go.
func TestDeparturesFromASmallRoom(t *testing.T) {
	var d departures
	collected := 0
	for range 640 {
		if d.add(3) {
			collected++
		}
	}
	if collected != 10 {
		t.Errorf("%d collections for 640 departures, expected one for each %d", collected, leastDepartures)
	}
}
