package experiment

// naming is what a plot calls a cell.
type naming func(*CellResult) string

// by names cells by some of their parameters.
func by(parameters []string, separator string) naming {
	return func(c *CellResult) string { return c.values(parameters, separator) }
}

// marked adds to names what the figures of their cells are worth where these are not valid: of all cells of a name, or in part.
func (n naming) marked(cells []*CellResult, separator string) naming {
	marks := make(map[string]string)
	worths := make(map[string][]Validity)
	for _, c := range cells {
		if len(c.Figures) == 0 {
			continue
		}
		name := n(c)
		worths[name] = append(worths[name], c.Worth)
	}
	for name, all := range worths {
		worst, alike := Valid, true
		for _, w := range all {
			worst, alike = worse(worst, w), alike && w == all[0]
		}
		switch {
		case worst == Valid:
		case alike:
			marks[name] = separator + "(" + string(worst) + ")"
		default:
			marks[name] = separator + "(in part " + string(worst) + ")"
		}
	}
	return func(c *CellResult) string {
		name := n(c)
		return name + marks[name]
	}
}
