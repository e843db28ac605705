// Package queue stores received items until a C program requests them, within limits of items and
// bytes. Beyond the limits, the oldest items are dropped. Any goroutine may use a queue.
package queue

import (
	"errors"
	"sync"
	"time"
)

// These are the errors of Pop.
var (
	// ErrEmpty reports that no item arrived in time, ErrEnded that none will arrive.
	ErrEmpty = errors.New("nothing arrived in time")
	ErrEnded = errors.New("no more data will arrive")
)

// Limits are the limits of waiting items. A single item may wait regardless of the size.
type Limits struct{ Things, Bytes int }

// Counts are the results of all pushed items: each was taken or dropped, or is waiting.
type Counts struct{ Taken, Dropped, Waiting uint64 }

// Queue is first in, first out.
type Queue[T any] struct {
	limits Limits
	// ready contains a token while there may be an item; ended is closed at the end.
	ready chan struct{}
	ended chan struct{}

	mu      sync.Mutex
	entries []entry[T]
	bytes   int
	over    bool
	taken   uint64
	dropped uint64
}

type entry[T any] struct {
	thing T
	size  int
}

// New makes an empty queue.
func New[T any](limits Limits) *Queue[T] {
	return &Queue[T]{limits: limits, ready: make(chan struct{}, 1), ended: make(chan struct{})}
}

// Push adds an item of the given size. Without room, Push drops the oldest items.
func (q *Queue[T]) Push(thing T, size int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.entries) > 0 && (len(q.entries) >= q.limits.Things || q.bytes+size > q.limits.Bytes) {
		q.shift()
		q.dropped++
	}
	q.entries = append(q.entries, entry[T]{thing, size})
	q.bytes += size
	q.wake()
}

// End marks the end of the input. Waiting items can still be taken. End must be called once.
func (q *Queue[T]) End() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.over = true
	close(q.ended)
}

// Pop removes and returns the oldest item. Pop waits for the given time, without limit if wait is negative. The error
// is ErrEmpty or ErrEnded.
func (q *Queue[T]) Pop(wait time.Duration) (T, error) {
	thing, err := q.take()
	if wait == 0 || !errors.Is(err, ErrEmpty) {
		return thing, err
	}
	var late <-chan time.Time
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		late = timer.C
	}
	for {
		select {
		case <-q.ready:
		case <-q.ended:
		case <-late:
			return q.take()
		}
		if thing, err := q.take(); !errors.Is(err, ErrEmpty) {
			return thing, err
		}
	}
}

// Counts returns the results of the pushed items.
func (q *Queue[T]) Counts() Counts {
	q.mu.Lock()
	defer q.mu.Unlock()
	return Counts{Taken: q.taken, Dropped: q.dropped, Waiting: uint64(len(q.entries))}
}

func (q *Queue[T]) take() (T, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.entries) > 0 {
		q.taken++
		thing := q.shift()
		if len(q.entries) > 0 {
			// The token stands for at least one push: the remaining items are for other callers.
			q.wake()
		}
		return thing, nil
	}
	var none T
	if q.over {
		return none, ErrEnded
	}
	return none, ErrEmpty
}

func (q *Queue[T]) shift() T {
	oldest := q.entries[0]
	q.entries[0] = entry[T]{}
	q.entries = q.entries[1:]
	q.bytes -= oldest.size
	return oldest.thing
}

func (q *Queue[T]) wake() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}
