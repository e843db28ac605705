package kubernetes

import (
	"slices"
	"testing"
)

// TestTally: a decision changes after as many results in a row as its threshold.
func TestTally(t *testing.T) {
	tally := newTally(&Probe{Successes: 2, Failures: 3}, false)
	results := []bool{true, false, true, true, false, false, true, false, false, false}
	var decisions []bool
	for _, success := range results {
		before := tally.well
		if changed := tally.add(success); changed != (before != tally.well) {
			t.Errorf("add reports %v for a change from %v to %v", changed, before, tally.well)
		}
		decisions = append(decisions, tally.well)
	}
	want := []bool{false, false, false, true, true, true, true, true, true, false}
	if !slices.Equal(decisions, want) {
		t.Errorf("decisions %v, expected %v", decisions, want)
	}
}

// TestTallyDefaults: without thresholds one result decides.
func TestTallyDefaults(t *testing.T) {
	tally := newTally(&Probe{}, true)
	if !tally.add(false) || tally.well || !tally.add(true) || !tally.well {
		t.Error("one result does not decide")
	}
}
