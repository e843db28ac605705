package queue

import (
	"context"
	"testing"
)

func TestQueue(t *testing.T) {
	q := New[int](3)
	for i := range 5 {
		oldest, dropped := q.Push(i)
		if dropped != (i >= 3) || dropped && oldest != i-3 {
			t.Errorf("item %d dropped %d, %v", i, oldest, dropped)
		}
	}
	for want := 2; want < 5; want++ {
		if got, ok := q.Pop(t.Context()); !ok || got != want {
			t.Errorf("got %d, %v, expected %d", got, ok, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, ok := q.Pop(ctx); ok {
		t.Error("popped an item from an empty queue")
	}
}

// ending is a context that ends when it is asked for its channel. Its last act is to push an item.
type ending struct {
	context.Context
	queue *Queue[int]
}

func (e ending) Done() <-chan struct{} {
	e.queue.Push(1)
	return e.Context.Done()
}

// TestPushBeforeTheEnd: an item that is pushed while the context ends is popped.
func TestPushBeforeTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	q := New[int](1)
	for range 100 {
		if item, ok := q.Pop(ending{ctx, q}); !ok || item != 1 {
			t.Fatalf("got %d, %v, expected the item", item, ok)
		}
	}
}

// TestHandover: one goroutine pushes and another pops. Items arrive in order, and only dropped items are missing.
func TestHandover(t *testing.T) {
	q := New[int](1)
	dropped, taken := 0, 0
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for last := -1; last < 999; {
			got, ok := q.Pop(t.Context())
			if !ok || got <= last {
				t.Errorf("got %d, %v after %d", got, ok, last)
				return
			}
			last = got
			taken++
		}
	}()
	for i := range 1000 {
		if _, gone := q.Push(i); gone {
			dropped++
		}
	}
	<-ended
	if dropped+taken != 1000 {
		t.Errorf("%d dropped and %d popped of 1000", dropped, taken)
	}
}

func TestAllocations(t *testing.T) {
	q := New[int](10)
	if n := testing.AllocsPerRun(100, func() { q.Push(1) }); n > 0.2 {
		t.Errorf("%g allocations per item", n)
	}
}
