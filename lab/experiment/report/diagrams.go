package report

import (
	"cmp"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/plot"
)

// paperName is the legend of the paper's figures.
const paperName = "the paper"

// Draw writes a plot of a result as one svg element. The error wraps plot.ErrEmpty if no cell has a figure of the plot.
func Draw(r *experiment.Result, p *experiment.Plot, w io.Writer) error { return draw(r, p).WriteSVG(w) }

// drawing is a diagram in the making: the plot of an experiment, and the cells that the plot shows.
type drawing struct {
	*plot.Diagram
	result *experiment.Result
	plot   *experiment.Plot
	cells  []*experiment.CellResult
}

func draw(r *experiment.Result, p *experiment.Plot) *plot.Diagram {
	d := drawing{Diagram: &plot.Diagram{Title: p.Title, Reference: paperName}, result: r, plot: p}
	for i := range r.Cells {
		if r.Cells[i].Parameters.Match(p.Where) {
			d.cells = append(d.cells, &r.Cells[i])
		}
	}
	switch p.Kind {
	case experiment.KindBars:
		d.bars()
	case experiment.KindStacked:
		d.stacked()
	case experiment.KindLines:
		d.lines()
	case experiment.KindDistribution:
		d.distribution()
	default:
		d.series()
	}
	return d.Diagram
}

// collect returns the index of a text in a list, and appends the text if absent.
func collect(all *[]string, text string) int {
	if i := slices.Index(*all, text); i >= 0 {
		return i
	}
	*all = append(*all, text)
	return len(*all) - 1
}

// axis returns the vertical axis of a figure.
func (d *drawing) axis(figure string) plot.Axis {
	q, _ := d.result.Experiment.Quantity(figure)
	return plot.Axis{Label: labelOf(q), FromZero: !d.plot.Log, Log: d.plot.Log}
}

// labelOf returns a quantity's label with its unit.
func labelOf(q experiment.Quantity) string {
	if q.Unit == "" || q.Unit == q.Label {
		return q.Label
	}
	return q.Label + ", " + q.Unit
}

// limits returns the bounds that the plot draws in the panel of a figure.
func (d *drawing) limits(figure string) []plot.Limit {
	var limits []plot.Limit
	for _, l := range d.plot.Limits {
		if l.Figure == "" || l.Figure == figure {
			limits = append(limits, plot.Limit{Value: l.Value, Label: l.Label})
		}
	}
	return limits
}

// measuredAt returns the point of a measured figure.
func measuredAt(x float64, s *experiment.Summary) plot.Point {
	point := plot.Point{X: x, Y: s.Mean}
	if s.Interval != nil {
		point.Low, point.High = s.Interval.Low, s.Interval.High
	}
	return point
}

// printedAt returns the point of a figure that the paper has printed.
func printedAt(x float64, f *experiment.PaperFigure) plot.Point {
	return plot.Point{X: x, Y: f.Value, Low: f.Value - f.PlusMinus, High: f.Value + f.PlusMinus}
}

// bars adds a panel per figure, with a group per value of X and a colour per value of Split. If a cell is not valid,
// its validity is added to the name of its colour, or to the name of its group if there is only one colour.
func (d *drawing) bars() {
	d.X.Label = d.plot.XLabel
	colours, groups := by(d.plot.Split, ", "), by(d.plot.X, "\n")
	if len(d.plot.Split) > 0 {
		colours = colours.marked(d.cells, " ")
	} else {
		groups = groups.marked(d.cells, "\n")
	}
	for _, figure := range d.plot.Figures {
		panel := plot.Panel{Y: d.axis(figure), Limits: d.limits(figure)}
		var names []string
		for _, c := range d.cells {
			s := c.Figure(figure)
			if s == nil {
				continue
			}
			name := cmp.Or(colours(c), s.Label)
			at := collect(&names, name)
			if at == len(panel.Bars) {
				panel.Bars = append(panel.Bars, plot.Bars{Name: name})
			}
			b := &panel.Bars[at]
			group := float64(collect(&d.Groups, groups(c)))
			b.Points = append(b.Points, measuredAt(group, s))
			if s.Paper != nil {
				b.References = append(b.References, printedAt(group, s.Paper))
			}
		}
		d.Panels = append(d.Panels, panel)
	}
}

// stacked adds one panel, in which the figures add up. The paper's figures form a separate group.
func (d *drawing) stacked() {
	d.X.Label = d.plot.XLabel
	panel := plot.Panel{Stacked: true, Limits: d.limits("")}
	groups := by(d.plot.X, "\n").marked(d.cells, "\n")
	for _, figure := range d.plot.Figures {
		q, _ := d.result.Experiment.Quantity(figure)
		b := plot.Bars{Name: q.Label}
		for _, c := range d.cells {
			if s := c.Figure(figure); s != nil {
				b.Points = append(b.Points, measuredAt(float64(collect(&d.Groups, groups(c))), s))
			}
		}
		panel.Bars = append(panel.Bars, b)
		panel.Y = plot.Axis{Label: cmp.Or(d.plot.Label, "together") + ", " + q.Unit, FromZero: true}
	}
	for i, figure := range d.plot.Figures {
		if f := commonPaper(d.cells, figure); f != nil {
			panel.Bars[i].Points = append(panel.Bars[i].Points,
				printedAt(float64(collect(&d.Groups, paperName)), f))
		}
	}
	d.Panels = []plot.Panel{panel}
}

// commonPaper returns the paper's value of a figure if all cells with a paper's value have the same value; otherwise
// nil.
func commonPaper(cells []*experiment.CellResult, figure string) (common *experiment.PaperFigure) {
	for _, c := range cells {
		s := c.Figure(figure)
		if s == nil || s.Paper == nil {
			continue
		}
		if common != nil && *common != *s.Paper {
			return nil
		}
		common = s.Paper
	}
	return common
}

// lines adds a panel per figure, over a numeric parameter.
func (d *drawing) lines() {
	d.X = d.lineAxis()
	for _, figure := range d.plot.Figures {
		q, _ := d.result.Experiment.Quantity(figure)
		curves := naming(func(c *experiment.CellResult) string {
			return cmp.Or(values(c, d.plot.Split, ", "), q.Label)
		}).marked(d.cells, " ")
		panel := plot.Panel{Y: d.axis(figure), Limits: d.limits(figure)}
		var names []string
		references := make(map[string][]plot.Point)
		for _, c := range d.cells {
			s := c.Figure(figure)
			if s == nil {
				continue
			}
			name := curves(c)
			at := collect(&names, name)
			if at == len(panel.Curves) {
				panel.Curves = append(panel.Curves, plot.Curve{Name: name, Kind: plot.LineAndDots})
			}
			x, _ := c.Cell.Number(d.plot.X[0]) // Parse has checked the number.
			panel.Curves[at].Points = append(panel.Curves[at].Points, measuredAt(x, s))
			if s.Paper != nil {
				references[name] = append(references[name], printedAt(x, s.Paper))
			}
		}
		for _, c := range panel.Curves {
			slices.SortStableFunc(c.Points, func(a, b plot.Point) int { return cmp.Compare(a.X, b.X) })
		}
		for _, name := range names {
			if points := references[name]; len(points) > 0 {
				panel.Curves = append(panel.Curves, plot.Curve{Name: paperName, Kind: plot.Reference, Points: points,
					Like: name})
			}
		}
		d.Panels = append(d.Panels, panel)
	}
}

// lineAxis returns the horizontal axis of lines. A single value is placed in the middle.
func (d *drawing) lineAxis() plot.Axis {
	axis := plot.Axis{Label: d.plot.XLabel, Whole: true}
	before := math.NaN()
	for _, c := range d.cells {
		x, _ := c.Cell.Number(d.plot.X[0])
		axis.Whole = axis.Whole && x == math.Trunc(x)
		axis.FromZero = axis.FromZero || !math.IsNaN(before) && x != before
		before = x
	}
	return axis
}

// shares is the largest number of points of a distribution's curve, enough for a page.
const shares = 200

// distribution adds one panel: per cell, the share of the samples that do not exceed a value.
func (d *drawing) distribution() {
	figure := d.plot.Figures[0]
	q, _ := d.result.Experiment.Quantity(figure)
	d.X = plot.Axis{Label: labelOf(q), FromZero: !d.plot.Log, Log: d.plot.Log}
	panel := plot.Panel{Y: plot.Axis{Label: "share of samples, %", FromZero: true}}
	for _, c := range d.cells {
		var samples []float64
		for _, f := range c.FiguresOf(figure) {
			samples = append(samples, f.Samples...)
		}
		if len(samples) == 0 {
			continue
		}
		slices.Sort(samples)
		curve := plot.Curve{Name: d.legend(c), Kind: plot.Line}
		for i := range min(shares, len(samples)) + 1 {
			at := i * (len(samples) - 1) / min(shares, len(samples))
			curve.Points = append(curve.Points, plot.Point{X: samples[at],
				Y: 100 * float64(at+1) / float64(len(samples))})
		}
		panel.Curves = append(panel.Curves, curve)
	}
	d.Panels = []plot.Panel{panel}
}

// legend returns a cell's legend, with the validity of its figures unless they are valid.
func (d *drawing) legend(c *experiment.CellResult) string {
	if len(d.plot.Split) > 0 {
		return values(c, d.plot.Split, ", ") + remark(c.Worth)
	}
	return c.Name + remark(c.Worth)
}

// values returns a cell's values of some parameters for legends and groups: tiles 4, quality 9.
func values(c *experiment.CellResult, names []string, separator string) string {
	texts := make([]string, len(names))
	for i, name := range names {
		value, _ := c.Parameters.Value(name)
		texts[i] = strings.ReplaceAll(name, "_", " ") + " " + value
		// A value that is not a number needs no name: websocket, not transport websocket.
		if value != "" && !strings.ContainsRune("0123456789.+-", rune(value[0])) && value != "true" &&
			value != "false" {
			texts[i] = value
		}
	}
	return strings.Join(texts, separator)
}
