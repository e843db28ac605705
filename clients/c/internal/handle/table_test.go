package handle

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func TestNumbersAreNeverUsedTwice(t *testing.T) {
	table := NewTable[string](1, "frame")
	first := table.Add("first")
	if thing, err := table.Remove(first); err != nil || thing != "first" {
		t.Fatalf("got %q and %v, expected first", thing, err)
	}
	second := table.Add("second")
	if first == second {
		t.Fatalf("both have the number %#x", uint64(first))
	}
	if thing, err := table.Get(second); err != nil || thing != "second" {
		t.Errorf("got %q and %v, expected second", thing, err)
	}
	if table.Holds(first) || !table.Holds(second) {
		t.Errorf("holds first %v, second %v, expected only second", table.Holds(first), table.Holds(second))
	}
}

func TestInvalidHandles(t *testing.T) {
	sessions, frames := NewTable[int](1, "session"), NewTable[int](2, "frame")
	session, gone := sessions.Add(1), frames.Add(2)
	if _, err := frames.Remove(gone); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		handle Handle
		want   string
	}{
		{0, "0 is not a frame"},
		{session, "is not a frame"},
		{gone, "no longer exists"},
		{gone + 1, "was never a frame"},
		{Handle(2 << kindShift), "was never a frame"},
		{^Handle(0), "is not a frame"},
	}
	for _, test := range tests {
		for what, look := range map[string]func(Handle) (int, error){"get": frames.Get, "remove": frames.Remove} {
			if _, err := look(test.handle); !errors.Is(err, ErrHandle) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s %#x: got %v, expected %q", what, uint64(test.handle), err, test.want)
			}
		}
	}
}

func TestRemoveAll(t *testing.T) {
	table := NewTable[int](1, "publisher")
	var odd, even []Handle
	for i := range 10 {
		if h := table.Add(i); i%2 == 1 {
			odd = append(odd, h)
		} else {
			even = append(even, h)
		}
	}
	table.RemoveAll(func(i int) bool { return i%2 == 1 })
	for i := range odd {
		if table.Holds(odd[i]) || !table.Holds(even[i]) {
			t.Errorf("pair %d: odd held %v, even %v, expected only even", i, table.Holds(odd[i]), table.Holds(even[i]))
		}
	}
}

func TestOneOfManyRemoves(t *testing.T) {
	table := NewTable[int](1, "frame")
	for range 100 {
		h := table.Add(0)
		var removed atomic.Int32
		var running sync.WaitGroup
		for range 8 {
			running.Go(func() {
				if _, err := table.Remove(h); err == nil {
					removed.Add(1)
				}
			})
		}
		running.Wait()
		if removed.Load() != 1 {
			t.Fatalf("%d goroutines removed the same thing, expected one", removed.Load())
		}
	}
}
