package tangled

// History refers to others, and no other file to it.
type History[T any] struct {
	clock Clock
	past  []T
}

func (h *History[T]) Size() int { return len(h.past) + len(format(h.clock.Zone())) }
