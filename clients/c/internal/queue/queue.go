// Package queue keeps what has arrived until a C program asks for it: so many things and bytes at most, of which the newest count. A queue belongs to
// nobody: any goroutine may use it.
package queue

import (
	"errors"
	"sync"
	"time"
)

// Errors of Pop.
var (
	// ErrEmpty says that nothing came in time, ErrEnded that nothing will.
	ErrEmpty = errors.New("nothing came in time")
	ErrEnded = errors.New("nothing more comes")
)

// Limits bound what waits. One thing may wait whatever its size is.
type Limits struct{ Things, Bytes int }

// Counts say what became of the things that were pushed: each has been taken or dropped, or waits.
type Counts struct{ Taken, Dropped, Waiting uint64 }

// Queue is first in, first out.
type Queue[T any] struct {
	limits Limits
	// ready holds a token while something may be there; ended is closed at the end.
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

// Push adds a thing of so many bytes. The oldest make room for it.
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

// End says that nothing more comes. What is there can still be taken. It is called once.
func (q *Queue[T]) End() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.over = true
	close(q.ended)
}

// Pop takes the oldest thing. It waits for one that long, for ever where wait is negative. The error is ErrEmpty or ErrEnded.
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

// Counts says what became of what was pushed.
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
			// The token stands for one push at least: what is left is somebody else's.
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
