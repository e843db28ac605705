package awake

import "testing"

// TestHold: processors are kept awake once, however many hold, until the last of them lets go, and again when somebody holds after that.
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
