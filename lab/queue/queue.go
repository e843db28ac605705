// Package queue is a bounded queue between two goroutines that keeps the newest items: with a size of one the newest
// item wins; with a size of ten it is the buffer of paper 002.
package queue

import (
	"context"
	"sync"
)

// Queue is a first-in, first-out queue. If it is full, Push drops the oldest item. It is safe for concurrent use.
type Queue[T any] struct {
	mu    sync.Mutex
	items []T
	size  int
	wake  chan struct{}
}

// New returns a queue of a size, at least 1.
func New[T any](size int) *Queue[T] {
	return &Queue[T]{size: max(1, size), wake: make(chan struct{}, 1)}
}

// Push adds an item. If the queue is full, Push removes and returns the oldest item.
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

// Pop waits for an item. Pop returns false if the context ends and no item is left.
func (q *Queue[T]) Pop(ctx context.Context) (item T, ok bool) {
	for {
		if item, ok = q.take(); ok {
			return item, true
		}
		select {
		case <-q.wake:
		case <-ctx.Done():
			return q.take()
		}
	}
}

// take removes the oldest item, if there is one.
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

// shift removes the oldest item and keeps the memory.
func (q *Queue[T]) shift() {
	last := copy(q.items, q.items[1:])
	var none T
	q.items[last] = none
	q.items = q.items[:last]
}
