package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/plot"
)

// series adds a panel per unit, from the first iteration of each cell on which the cell's figures are based.
func (d *drawing) series() {
	var units []string
	for _, c := range d.cells {
		usable := c.Usable()
		if len(usable) == 0 {
			continue
		}
		for _, s := range usable[0].Lines {
			if !slices.Contains(d.plot.Series, s.Name) {
				continue
			}
			at := collect(&units, s.Unit)
			if at == len(d.Panels) {
				q := experiment.Quantity{Label: cmp.Or(d.plot.Label, d.seriesLabel(s.Name)), Unit: s.Unit}
				d.Panels = append(d.Panels, plot.Panel{
					Y:      plot.Axis{Label: labelOf(q), FromZero: !d.plot.Log, Log: d.plot.Log},
					Limits: d.limits(""),
				})
			}
			d.X.Label = cmp.Or(d.plot.XLabel, fmt.Sprintf("time, %s", s.XUnit))
			d.Panels[at].Curves = append(d.Panels[at].Curves, plot.Curve{Name: d.seriesName(c, s.Name),
				Kind: plot.Line, Points: pointsOf(s)})
		}
	}
}

// seriesName returns a curve's legend: the cell if there are several, and the series if there are several.
func (d *drawing) seriesName(c *experiment.CellResult, series string) string {
	series = d.seriesLabel(series)
	switch {
	case len(d.result.Cells) == 1:
		return series + remark(c.Worth)
	case len(d.plot.Series) == 1:
		return d.legend(c)
	}
	return d.legend(c) + ": " + series
}

// seriesLabel returns the label of a series for axes and legends: that of the quantity of the same name, if any.
func (d *drawing) seriesLabel(name string) string {
	if q, ok := d.result.Experiment.Quantity(name); ok {
		return q.Label
	}
	return name
}

func pointsOf(s experiment.Series) []plot.Point {
	points := make([]plot.Point, len(s.Points))
	for i, p := range s.Points {
		points[i] = plot.Point{X: p[0], Y: p[1]}
	}
	return points
}
