package tangled

// Basket refers to others, and no other file to it.
type Basket[T any] struct {
	ball Ball
	more []T
}

func (b *Basket[T]) Size() int { return len(b.more) + len(plain(b.ball.Colour())) }
