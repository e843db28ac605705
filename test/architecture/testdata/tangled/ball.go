package tangled

// Ball refers to string.go.
type Ball struct{ thread Thread }

func (b *Ball) Roll() { b.thread = longest }

func (b Ball) Colour() string { return "red" }
