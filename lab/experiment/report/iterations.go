package report

import "github.com/volsfu/volsfu/lab/experiment"

// iterationRow is a figure of a cell over its iterations: their spread, and each value.
type iterationRow struct {
	Cell, Figure, Unit  string
	Worth               experiment.Validity
	Deviation, Min, Max string
	Each                []iterationFigure
}

// iterationFigure is the figure of one iteration.
type iterationFigure struct {
	Text     string
	Validity experiment.Validity
}

// iterations adds the rows of a cell, one for each figure of the table. Deviation, least and largest are over the
// iterations on which the cell's figures are based. The values of the other iterations are listed as well.
func (v *view) iterations(c *experiment.CellResult) {
	if v.Result.Iterations < 2 {
		return
	}
	for _, q := range v.Columns {
		s := c.Figure(q.Name)
		if s == nil {
			continue
		}
		row := iterationRow{Cell: c.Name, Figure: q.Label, Unit: q.Unit, Worth: c.Worth, Deviation: Number(s.Deviation),
			Min: Number(s.Min), Max: Number(s.Max)}
		for _, iteration := range c.Iterations {
			text := "–"
			if value, known := iteration.Figure(q.Name); known {
				text = Number(value)
			}
			row.Each = append(row.Each, iterationFigure{text, iteration.Validity})
		}
		v.Spreads = append(v.Spreads, row)
	}
}
