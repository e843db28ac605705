package queue

import (
	"errors"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// generous is a time limit beyond any duration here.
const generous = 30 * time.Second

func TestOldestMakeRoom(t *testing.T) {
	tests := []struct {
		name   string
		limits Limits
		sizes  []int
		want   []int // the remaining items, by their index among the sizes
	}{
		{"all fit", Limits{3, 100}, []int{10, 20, 30}, []int{0, 1, 2}},
		{"too many", Limits{2, 100}, []int{1, 1, 1, 1}, []int{2, 3}},
		{"too large", Limits{10, 100}, []int{40, 40, 40}, []int{1, 2}},
		{"one makes many leave", Limits{10, 100}, []int{30, 30, 30, 95}, []int{3}},
		{"one is larger than the queue", Limits{10, 100}, []int{10, 500}, []int{1}},
		{"nothing but empty ones", Limits{2, 0}, []int{0, 0, 0}, []int{1, 2}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			q := New[int](test.limits)
			for i, size := range test.sizes {
				q.Push(i, size)
			}
			dropped := len(test.sizes) - len(test.want)
			if c := q.Counts(); c != (Counts{Dropped: uint64(dropped), Waiting: uint64(len(test.want))}) {
				t.Errorf("%+v, expected %d dropped and %d waiting", c, dropped, len(test.want))
			}
			for _, want := range test.want {
				if got, err := q.Pop(0); err != nil || got != want {
					t.Errorf("got %d and %v, expected %d", got, err, want)
				}
			}
			if _, err := q.Pop(0); !errors.Is(err, ErrEmpty) {
				t.Errorf("got %v, expected %v", err, ErrEmpty)
			}
			if q.bytes != 0 {
				t.Errorf("an empty queue counts %d bytes", q.bytes)
			}
		})
	}
}

func TestPopTimesOut(t *testing.T) {
	q := New[int](Limits{1, 1})
	if _, err := q.Pop(time.Millisecond); !errors.Is(err, ErrEmpty) {
		t.Errorf("got %v, expected %v", err, ErrEmpty)
	}
}

func TestPopAfterEnd(t *testing.T) {
	q := New[int](Limits{2, 2})
	q.Push(7, 1)
	q.End()
	if got, err := q.Pop(-1); err != nil || got != 7 {
		t.Errorf("got %d and %v, expected 7", got, err)
	}
	for _, wait := range []time.Duration{-1, 0, generous} {
		if _, err := q.Pop(wait); !errors.Is(err, ErrEnded) {
			t.Errorf("wait %v: got %v, expected %v", wait, err, ErrEnded)
		}
	}
}

// TestManyWaiters uses many waiting goroutines and many items: each item is taken once, and all goroutines detect the
// end.
func TestManyWaiters(t *testing.T) {
	const things, waiting = 2000, 8
	q := New[int](Limits{things, things})
	var mu sync.Mutex
	seen := make(map[int]int)
	var running sync.WaitGroup
	for i := range waiting {
		wait := time.Duration(-1)
		if i%2 == 0 {
			wait = generous
		}
		running.Go(func() {
			for {
				thing, err := q.Pop(wait)
				if err != nil {
					if !errors.Is(err, ErrEnded) {
						t.Errorf("got %v, expected %v", err, ErrEnded)
					}
					return
				}
				mu.Lock()
				seen[thing]++
				mu.Unlock()
			}
		})
	}
	for i := range things {
		q.Push(i, 1)
	}
	q.End()
	running.Wait()
	for i := range things {
		if seen[i] != 1 {
			t.Fatalf("thing %d was taken %d times, expected once", i, seen[i])
		}
	}
	if c := q.Counts(); c != (Counts{Taken: things}) {
		t.Errorf("%+v, expected %d taken", c, things)
	}
}
