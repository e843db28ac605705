package tangled

// Observer refers to clock.go.
type Observer struct{ clock *Clock }

func (o *Observer) Notify() { o.clock.Advance() }
