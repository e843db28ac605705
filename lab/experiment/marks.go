package experiment

// naming returns the name of a cell in a plot.
type naming func(*CellResult) string

// by names cells by the values of the given parameters.
func by(parameters []string, separator string) naming {
	return func(c *CellResult) string { return c.values(parameters, separator) }
}

// marked appends the validity of cells to their names, unless all cells of a name are valid. If only some cells of a
// name are not valid, the validity is marked as partial.
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
