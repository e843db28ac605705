package produce

import (
	"context"
	"sync"
)

// mailbox holds at most one item. put returns the replaced item. A mailbox is safe for concurrent use.
type mailbox[T any] struct {
	mu     sync.Mutex
	full   bool
	newest T
	filled chan struct{}
}

func newMailbox[T any]() *mailbox[T] { return &mailbox[T]{filled: make(chan struct{}, 1)} }

// put stores v and returns the item that v replaces, if any.
func (m *mailbox[T]) put(v T) (older T, replaced bool) {
	m.mu.Lock()
	older, replaced = m.newest, m.full
	m.newest, m.full = v, true
	m.mu.Unlock()
	select {
	case m.filled <- struct{}{}:
	default:
	}
	return older, replaced
}

// take waits for an item and removes the item. take returns the context's error if the context ends first.
func (m *mailbox[T]) take(ctx context.Context) (T, error) {
	for {
		m.mu.Lock()
		if m.full {
			v := m.newest
			var none T
			m.newest, m.full = none, false
			m.mu.Unlock()
			return v, nil
		}
		m.mu.Unlock()
		select {
		case <-m.filled:
		case <-ctx.Done():
			var none T
			return none, ctx.Err()
		}
	}
}
