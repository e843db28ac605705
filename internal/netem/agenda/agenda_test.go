package agenda

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

type task struct {
	Place
	name int
}

var start = time.Unix(1_795_188_600, 0)

// TestOrder sets, moves and removes items at random, and checks that the rest is due completely and in order.
func TestOrder(t *testing.T) {
	var a Agenda[*task]
	if _, ok := a.First(start); ok || !a.Next().IsZero() {
		t.Error("an empty agenda has something to do")
	}
	random := rand.New(rand.NewPCG(1, 2))
	tasks := make([]*task, 50)
	for i := range tasks {
		tasks[i] = &task{name: i}
	}
	for range 2000 {
		item := tasks[random.IntN(len(tasks))]
		if random.IntN(4) == 0 {
			a.Set(item, time.Time{})
		} else {
			a.Set(item, start.Add(time.Duration(random.IntN(100))*time.Millisecond))
		}
	}
	left := map[int]time.Time{}
	for _, item := range tasks {
		if !item.Due().IsZero() {
			left[item.name] = item.Due()
		}
	}
	var order []time.Time
	for end := start.Add(time.Hour); ; {
		due := a.Next()
		item, ok := a.First(end)
		if !ok {
			break
		}
		if !item.Due().Equal(due) || !left[item.name].Equal(due) {
			t.Fatalf("task %d is due at %v, the agenda returned %v, it was set to %v", item.name, item.Due(), due,
				left[item.name])
		}
		if _, early := a.First(due.Add(-1)); early {
			t.Fatalf("task %d is returned before it is due", item.name)
		}
		order = append(order, due)
		delete(left, item.name)
		a.Set(item, time.Time{})
	}
	if len(left) > 0 || !slices.IsSortedFunc(order, time.Time.Compare) {
		t.Errorf("%d tasks never fell due; the order was %v", len(left), order)
	}
}

// TestAllocations: moving items in an agenda allocates nothing.
func TestAllocations(t *testing.T) {
	var a Agenda[*task]
	tasks := [3]task{}
	for i := range tasks {
		a.Set(&tasks[i], start)
	}
	now := start
	if n := testing.AllocsPerRun(100, func() {
		first, ok := a.First(now)
		if !ok {
			t.Fatal("nothing is due")
		}
		now = now.Add(time.Millisecond)
		a.Set(first, time.Time{})
		a.Set(first, now)
	}); n != 0 {
		t.Errorf("%g allocations", n)
	}
}
