package tangled

// Paw refers to ball.go.
type Paw struct{ ball *Ball }

func (p *Paw) Pull() { p.ball.Roll() }
