package feedback

import (
	"testing"
	"time"
)

func TestMissingBudget(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	b := NewMissingBudget(500, 1000)
	for _, step := range []struct {
		name    string
		after   time.Duration
		packets int
		want    int
		ok      bool
	}{
		{"more than the burst", 0, 0, 1001, false},
		{"the burst", 0, 0, 1000, true},
		{"one more", 0, 0, 1, false},
		{"what has come meanwhile", 100 * time.Millisecond, 7, 57, true},
		{"a clock that goes back", -time.Hour, 0, 1, false},
		{"no more than the burst after hours", 2 * time.Hour, 5000, 1001, false},
	} {
		now = now.Add(step.after)
		for range step.packets {
			b.Earn()
		}
		if ok := b.take(step.want, now); ok != step.ok {
			t.Errorf("%s: %t", step.name, ok)
		}
	}
	if refused := b.TakeRefused(); refused != 1001+1+1+1001 || b.TakeRefused() != 0 {
		t.Errorf("%d were refused", refused)
	}
	var none *MissingBudget
	if !none.take(1<<20, now) {
		t.Error("a generator without a budget is bounded")
	}
}

// TestGeneratorsShareABudget: packets recorded by one generator reduce the budget of the other.
func TestGeneratorsShareABudget(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	b := NewMissingBudget(0, 100)
	var generators []*NACKGenerator
	for range 3 {
		g := NewNACKGenerator(DefaultConfig().NACK)
		g.Share(b)
		g.Received(1000, now)
		generators = append(generators, g)
	}
	for n, want := range []int{60, 0, 40} {
		g := generators[n]
		g.Received(1000+[]int64{61, 61, 41}[n], now)
		if g.Missing() != want {
			t.Errorf("generator %d misses %d packets, expected %d", n, g.Missing(), want)
		}
	}
	// The second generator continues at its position.
	if got := generators[1].Received(1030, now); got != Old {
		t.Errorf("a packet that was not taken note of is %d, expected Old", got)
	}
	if got := generators[1].Received(1062, now); got != InOrder {
		t.Errorf("the next packet is %d, expected InOrder", got)
	}
}
