package admission

import (
	"fmt"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/signal"
)

// TestAnnouncements checks that a bearer may use its whole budget at once, that the budget recovers, and that full
// budgets are removed.
func TestAnnouncements(t *testing.T) {
	const burst = 10 * announceRate
	a := NewAnnouncements(burst)
	for _, step := range []struct {
		after   time.Duration
		bearer  Bearer
		bytes   int
		refused bool
	}{
		{0, "mallory", burst - 1000, false},
		{0, "mallory", 1001, true},
		{0, "ada", burst, false},
		{0, "", burst, false},
		{0, "", burst, false},
		{time.Second, "mallory", announceRate, false},
		{9 * time.Second, "mallory", burst, true},
		// A request above the full budget costs the full budget.
		{11 * time.Second, "mallory", 2 * burst, false},
	} {
		refused := a.Take(step.bearer, step.bytes, start.Add(step.after))
		if (refused != nil) != step.refused || refused != nil && refused.Code != signal.CodeLimit {
			t.Errorf("after %v %d bytes of %q: refused with %v, expected a refusal: %v", step.after, step.bytes,
				step.bearer,
				refused, step.refused)
		}
	}
	for i := range leastSweep - 2 {
		a.Take(Bearer(fmt.Sprint(i)), 1, start.Add(11*time.Second))
	}
	if len(a.budgets) != leastSweep {
		t.Fatalf("%d budgets, expected %d", len(a.budgets), leastSweep)
	}
	a.Take("eve", 1, start.Add(time.Minute))
	if len(a.budgets) != 1 {
		t.Errorf("%d budgets are kept, expected only the new one", len(a.budgets))
	}
}

// TestHoldings checks the limits of rooms and places, and that a bearer without holdings is removed.
func TestHoldings(t *testing.T) {
	h := NewHoldings(Limits{Rooms: 1, Places: 2})
	hold := func(b Bearer, opens, admitted bool) {
		t.Helper()
		if refused := h.Hold(b, opens); (refused == nil) != admitted ||
			refused != nil && refused.Code != signal.CodeLimit {
			t.Errorf("%q, opens a room %v: %v, expected to be admitted: %v", b, opens, refused, admitted)
		}
	}
	hold("a", true, true)
	hold("a", true, false)
	hold("a", false, true)
	hold("a", false, false)
	hold("b", true, true)
	for range 10 {
		hold("", true, true)
	}
	// The bearer leaves its room, in which others stay.
	h.Release("a", 1, 0)
	hold("a", true, false)
	h.Release("a", 0, 1)
	hold("a", true, true)
	h.Release("a", 2, 1)
	h.Release("b", 1, 1)
	h.Release("", 10, 10)
	if n := h.Len(); n != 0 {
		t.Errorf("%d bearers have something, expected none", n)
	}
}
