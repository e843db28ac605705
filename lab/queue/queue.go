// Package queue holds what one goroutine makes until another takes it, a bounded number of the newest: with room for
// one the newest wins, with room for ten it is the buffer of paper 002.
package queue

import (
	"context"
	"sync"
)

// Queue is first in, first out, and drops the oldest where it is full. It is safe for concurrent use.
type Queue[T any] struct {
	mu    sync.Mutex
	items []T
	size  int
	wake  chan struct{}
}

// New makes a queue of a size, at least 1.
func New[T any](size int) *Queue[T] {
	return &Queue[T]{size: max(1, size), wake: make(chan struct{}, 1)}
}

// Push puts an item in. If that is one too many it takes out the oldest, and tells so.
func (q *Queue[T]) Push(item T) (oldest T, dropped bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == q.size {
		oldest, dropped = q.items[0], true
		q.shift()
	}
	q.items = append(q.items, item)
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return oldest, dropped
}

// Pop waits for an item. It tells false when the context ends before.
func (q *Queue[T]) Pop(ctx context.Context) (item T, ok bool) {
	for {
		if item, ok = q.take(); ok {
			return item, true
		}
		select {
		case <-q.wake:
		case <-ctx.Done():
			return item, false
		}
	}
}

// take takes the oldest item, if there is any.
func (q *Queue[T]) take() (item T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return item, false
	}
	item = q.items[0]
	q.shift()
	return item, true
}

// shift forgets the oldest item and keeps the memory.
func (q *Queue[T]) shift() {
	last := copy(q.items, q.items[1:])
	var none T
	q.items[last] = none
	q.items = q.items[:last]
}
