package awake

import "testing"

// TestHold: the way to keep processors awake starts once for any number of holders, ends with the last one, and starts
// again with the next holder.
func TestHold(t *testing.T) {
	var started, stopped int
	w := watch{start: func() func() {
		started++
		return func() { stopped++ }
	}}
	for round := range 2 {
		first, second := w.hold(), w.hold()
		first()
		first()
		if started != round+1 || stopped != round {
			t.Fatalf("round %d: %d times begun and %d times ended while one still holds", round, started, stopped)
		}
		second()
		if stopped != round+1 {
			t.Fatalf("round %d: %d times ended after all have let go", round, stopped)
		}
	}
}
