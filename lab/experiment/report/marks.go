package report

import "github.com/volsfu/volsfu/lab/experiment"

// naming returns the name of a cell in a plot.
type naming func(*experiment.CellResult) string

// by names cells by the values of the given parameters.
func by(parameters []string, separator string) naming {
	return func(c *experiment.CellResult) string { return values(c, parameters, separator) }
}

// marked appends the validity of cells to their names, unless all cells of a name are valid. If only some cells of a
// name are not valid, the validity is marked as partial.
func (n naming) marked(cells []*experiment.CellResult, separator string) naming {
	marks := make(map[string]string)
	worths := make(map[string][]experiment.Validity)
	for _, c := range cells {
		if len(c.Figures) == 0 {
			continue
		}
		name := n(c)
		worths[name] = append(worths[name], c.Worth)
	}
	for name, all := range worths {
		worst, alike := experiment.Valid, true
		for _, w := range all {
			worst, alike = experiment.Worse(worst, w), alike && w == all[0]
		}
		switch {
		case worst == experiment.Valid:
		case alike:
			marks[name] = separator + "(" + string(worst) + ")"
		default:
			marks[name] = separator + "(in part " + string(worst) + ")"
		}
	}
	return func(c *experiment.CellResult) string {
		name := n(c)
		return name + marks[name]
	}
}
