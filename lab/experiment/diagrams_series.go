package experiment

import (
	"fmt"
	"slices"

	"github.com/volsfu/volsfu/lab/plot"
)

// series adds a panel per unit, from the first iteration of each cell on which the cell's figures are based.
func (r *Result) series(d *plot.Diagram, p *Plot, cells []*CellResult) {
	var units []string
	for _, c := range cells {
		usable := c.usable()
		if len(usable) == 0 {
			continue
		}
		for _, s := range usable[0].Lines {
			if !slices.Contains(p.Series, s.Name) {
				continue
			}
			at := collect(&units, s.Unit)
			if at == len(d.Panels) {
				q := Quantity{Label: orElse(p.Label, r.seriesLabel(s.Name)), Unit: s.Unit}
				d.Panels = append(d.Panels, plot.Panel{Y: plot.Axis{Label: q.axis(), FromZero: !p.Log, Log: p.Log},
					Limits: p.limitsOf("")})
			}
			d.X.Label = orElse(p.XLabel, fmt.Sprintf("time, %s", s.XUnit))
			d.Panels[at].Curves = append(d.Panels[at].Curves, plot.Curve{Name: r.seriesName(c, p, s.Name),
				Kind: plot.Line, Points: pointsOf(s)})
		}
	}
}

// seriesName returns a curve's legend: the cell if there are several, and the series if there are several.
func (r *Result) seriesName(c *CellResult, p *Plot, series string) string {
	label := c.label(p.Split)
	series = r.seriesLabel(series)
	switch {
	case len(r.Cells) == 1:
		return series + c.Worth.remark()
	case len(p.Series) == 1:
		return label
	}
	return label + ": " + series
}

// seriesLabel returns the label of a series for axes and legends: that of the quantity of the same name, if any.
func (r *Result) seriesLabel(name string) string {
	if q, ok := r.experiment.Quantity(name); ok {
		return q.Label
	}
	return name
}

func pointsOf(s Series) []plot.Point {
	points := make([]plot.Point, len(s.Points))
	for i, p := range s.Points {
		points[i] = plot.Point{X: p[0], Y: p[1]}
	}
	return points
}
