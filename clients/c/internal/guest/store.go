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
	holding
	queue *queue.Queue[T]
}

func newStore[T any](limits queue.Limits) *store[T] {
	return &store[T]{holding: holding{limits: limits}, queue: queue.New[T](limits)}
}

// take returns the oldest item; size computes its bytes.
func (s *store[T]) take(wait time.Duration, size func(T) int) (T, error) {
	if err := s.reserve(); err != nil {
		var none T
		return none, err
	}
	thing, err := s.queue.Pop(wait)
	if err != nil {
		s.release(0)
		return thing, err
	}
	s.add(size(thing))
	return thing, nil
}

// holding counts the items held by the program.
type holding struct {
	limits queue.Limits

	mu    sync.Mutex
	held  int
	bytes int
}

// reserve reserves a place for an item. A waiting caller reserves before it waits, so that several callers cannot
// exceed the limit of items. Bytes are known only afterwards, so each caller may exceed their limit by one item.
func (h *holding) reserve() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held >= h.limits.Things || h.bytes > 0 && h.bytes >= h.limits.Bytes {
		return fmt.Errorf(
			"%w: %d of %d, with %d of %d bytes",
			ErrTooMuchHeld,
			h.held,
			h.limits.Things,
			h.bytes,
			h.limits.Bytes,
		)
	}
	h.held++
	return nil
}

// add adds the bytes of an item with a reserved place.
func (h *holding) add(size int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bytes += size
}

// release records that an item of the given size is no longer held.
func (h *holding) release(size int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held--
	h.bytes -= size
}

func (h *holding) holds() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.held
}
