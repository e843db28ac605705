package guest

import (
	"fmt"
	"sync"
	"time"

	"github.com/volsfu/volsfu/clients/c/internal/queue"
)

// store contains the waiting data and counts the data held by the program, each with the same
// limits.
type store[T any] struct {
	limits queue.Limits
	queue  *queue.Queue[T]

	mu        sync.Mutex
	held      int
	heldBytes int
}

func newStore[T any](limits queue.Limits) *store[T] {
	return &store[T]{limits: limits, queue: queue.New[T](limits)}
}

// take returns the oldest item; size computes its bytes. A waiting caller reserves a place among
// the held items, so that several callers cannot exceed the limit of items. Bytes are known only
// afterwards, so each caller may exceed their limit by one item.
func (s *store[T]) take(wait time.Duration, size func(T) int) (T, error) {
	if err := s.reserve(); err != nil {
		var none T
		return none, err
	}
	thing, err := s.queue.Pop(wait)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.held--
		return thing, err
	}
	s.heldBytes += size(thing)
	return thing, nil
}

func (s *store[T]) reserve() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held >= s.limits.Things || s.heldBytes > 0 && s.heldBytes >= s.limits.Bytes {
		return fmt.Errorf(
			"%w: %d of %d, with %d of %d bytes",
			ErrTooMuchHeld,
			s.held,
			s.limits.Things,
			s.heldBytes,
			s.limits.Bytes,
		)
	}
	s.held++
	return nil
}

// release records that an item of the given size is no longer held.
func (s *store[T]) release(size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held--
	s.heldBytes -= size
}

func (s *store[T]) holds() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held
}
