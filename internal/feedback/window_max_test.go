package feedback

import (
	"testing"
	"time"
)

// TestWindowMax has a window of a second.
func TestWindowMax(t *testing.T) {
	var m WindowMax[int]
	if m.Value() != 0 {
		t.Errorf("an empty WindowMax is %d", m.Value())
	}
	for _, step := range []struct {
		ms, value, want int
	}{
		{0, 3, 3}, {500, 7, 7}, {900, 2, 7}, {1000, 1, 7}, {1900, 4, 7}, {2000, 2, 4}, {2500, 3, 4}, {3000, 1, 3},
		// After two windows without values, only the new value counts.
		{5000, 1, 1}, {5100, 2, 2},
	} {
		m.Add(time.Duration(step.ms)*time.Millisecond, step.value, time.Second)
		if got := m.Value(); got != step.want {
			t.Errorf("at %d ms, after %d, the largest is %d, expected %d", step.ms, step.value, got, step.want)
		}
	}
}
