package experiment

import (
	"cmp"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/volsfu/volsfu/lab/plot"
)

// paperName is the legend of the paper's figures.
const paperName = "the paper"

// Draw writes a plot of the result as one svg element. The error wraps plot.ErrEmpty if no cell has a figure of the
// plot.
func (r *Result) Draw(p *Plot, w io.Writer) error { return r.diagram(p).WriteSVG(w) }

func (r *Result) diagram(p *Plot) *plot.Diagram {
	var cells []*CellResult
	for i := range r.Cells {
		if r.Cells[i].Parameters.Match(p.Where) {
			cells = append(cells, &r.Cells[i])
		}
	}
	d := &plot.Diagram{Title: p.Title, Reference: paperName}
	switch p.Kind {
	case kindBars:
		r.bars(d, p, cells)
	case kindStacked:
		r.stacked(d, p, cells)
	case kindLines:
		r.lines(d, p, cells)
	case kindDistribution:
		r.distribution(d, p, cells)
	default:
		r.series(d, p, cells)
	}
	return d
}

// values returns a cell's values of some parameters for legends and groups: tiles 4, quality 9.
func (c *CellResult) values(names []string, separator string) string {
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

// collect returns the index of a text in a list, and appends the text if absent.
func collect(all *[]string, text string) int {
	if i := slices.Index(*all, text); i >= 0 {
		return i
	}
	*all = append(*all, text)
	return len(*all) - 1
}

func (r *Result) axis(name string, log bool) plot.Axis {
	q, _ := r.experiment.Quantity(name)
	return plot.Axis{Label: q.axis(), FromZero: !log, Log: log}
}

// axis returns a quantity's label with its unit.
func (q *Quantity) axis() string {
	if q.Unit == "" || q.Unit == q.Label {
		return q.Label
	}
	return q.Label + ", " + q.Unit
}

func (p *Plot) limitsOf(figure string) []plot.Limit {
	var limits []plot.Limit
	for _, l := range p.Limits {
		if l.Figure == "" || l.Figure == figure {
			limits = append(limits, plot.Limit{Value: l.Value, Label: l.Label})
		}
	}
	return limits
}

// point converts a summary to a point.
func (s *Summary) point(x float64) plot.Point {
	point := plot.Point{X: x, Y: s.Mean}
	if s.Interval != nil {
		point.Low, point.High = s.Interval.Low, s.Interval.High
	}
	return point
}

func (f *PaperFigure) point(x float64) plot.Point {
	return plot.Point{X: x, Y: f.Value, Low: f.Value - f.PlusMinus, High: f.Value + f.PlusMinus}
}

// bars adds a panel per figure, with a group per value of X and a colour per value of Split. If a cell is not valid,
// its validity is added to the name of its colour, or to the name of its group if there is only one colour.
func (r *Result) bars(d *plot.Diagram, p *Plot, cells []*CellResult) {
	d.X.Label = p.XLabel
	colours, groups := by(p.Split, ", "), by(p.X, "\n")
	if len(p.Split) > 0 {
		colours = colours.marked(cells, " ")
	} else {
		groups = groups.marked(cells, "\n")
	}
	for _, figure := range p.Figures {
		panel := plot.Panel{Y: r.axis(figure, p.Log), Limits: p.limitsOf(figure)}
		var names []string
		for _, c := range cells {
			s := c.Figure(figure)
			if s == nil {
				continue
			}
			name := orElse(colours(c), s.Label)
			at := collect(&names, name)
			if at == len(panel.Bars) {
				panel.Bars = append(panel.Bars, plot.Bars{Name: name})
			}
			b := &panel.Bars[at]
			group := float64(collect(&d.Groups, groups(c)))
			b.Points = append(b.Points, s.point(group))
			if s.Paper != nil {
				b.References = append(b.References, s.Paper.point(group))
			}
		}
		d.Panels = append(d.Panels, panel)
	}
}

// stacked adds one panel, in which the figures add up. The paper's figures form a separate group.
func (r *Result) stacked(d *plot.Diagram, p *Plot, cells []*CellResult) {
	d.X.Label = p.XLabel
	panel := plot.Panel{Stacked: true, Limits: p.limitsOf("")}
	groups := by(p.X, "\n").marked(cells, "\n")
	for _, figure := range p.Figures {
		q, _ := r.experiment.Quantity(figure)
		b := plot.Bars{Name: q.Label}
		for _, c := range cells {
			if s := c.Figure(figure); s != nil {
				b.Points = append(b.Points, s.point(float64(collect(&d.Groups, groups(c)))))
			}
		}
		panel.Bars = append(panel.Bars, b)
		panel.Y = plot.Axis{Label: orElse(p.Label, "together") + ", " + q.Unit, FromZero: true}
	}
	for i, figure := range p.Figures {
		if f := commonPaper(cells, figure); f != nil {
			panel.Bars[i].Points = append(panel.Bars[i].Points, f.point(float64(collect(&d.Groups, paperName))))
		}
	}
	d.Panels = []plot.Panel{panel}
}

// commonPaper returns the paper's value of a figure if all cells with a paper's value have the same value; otherwise
// nil.
func commonPaper(cells []*CellResult, figure string) (common *PaperFigure) {
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
func (r *Result) lines(d *plot.Diagram, p *Plot, cells []*CellResult) {
	d.X = lineAxis(p, cells)
	for _, figure := range p.Figures {
		q, _ := r.experiment.Quantity(figure)
		curves := naming(func(c *CellResult) string { return orElse(c.values(p.Split, ", "), q.Label) }).marked(cells,
			" ")
		panel := plot.Panel{Y: r.axis(figure, p.Log), Limits: p.limitsOf(figure)}
		var names []string
		references := make(map[string][]plot.Point)
		for _, c := range cells {
			s := c.Figure(figure)
			if s == nil {
				continue
			}
			name := curves(c)
			at := collect(&names, name)
			if at == len(panel.Curves) {
				panel.Curves = append(panel.Curves, plot.Curve{Name: name, Kind: plot.LineAndDots})
			}
			x, _ := c.cell.number(p.X[0]) // Parse has checked the number.
			panel.Curves[at].Points = append(panel.Curves[at].Points, s.point(x))
			if s.Paper != nil {
				references[name] = append(references[name], s.Paper.point(x))
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
func lineAxis(p *Plot, cells []*CellResult) plot.Axis {
	axis := plot.Axis{Label: p.XLabel, Whole: true}
	before := math.NaN()
	for _, c := range cells {
		x, _ := c.cell.number(p.X[0])
		axis.Whole = axis.Whole && x == math.Trunc(x)
		axis.FromZero = axis.FromZero || !math.IsNaN(before) && x != before
		before = x
	}
	return axis
}

// shares is the largest number of points of a distribution's curve, enough for a page.
const shares = 200

// distribution adds one panel: per cell, the share of the samples that do not exceed a value.
func (r *Result) distribution(d *plot.Diagram, p *Plot, cells []*CellResult) {
	figure := p.Figures[0]
	q, _ := r.experiment.Quantity(figure)
	d.X = plot.Axis{Label: q.axis(), FromZero: !p.Log, Log: p.Log}
	panel := plot.Panel{Y: plot.Axis{Label: "share of samples, %", FromZero: true}}
	for _, c := range cells {
		var samples []float64
		for _, f := range c.figuresOf(figure) {
			samples = append(samples, f.Samples...)
		}
		if len(samples) == 0 {
			continue
		}
		slices.Sort(samples)
		curve := plot.Curve{Name: c.label(p.Split), Kind: plot.Line}
		for i := range min(shares, len(samples)) + 1 {
			at := i * (len(samples) - 1) / min(shares, len(samples))
			curve.Points = append(curve.Points, plot.Point{X: samples[at],
				Y: 100 * float64(at+1) / float64(len(samples))})
		}
		panel.Curves = append(panel.Curves, curve)
	}
	d.Panels = []plot.Panel{panel}
}

// label returns a cell's legend, with the validity of its figures unless they are valid.
func (c *CellResult) label(split []string) string {
	if len(split) > 0 {
		return c.values(split, ", ") + c.Worth.remark()
	}
	return c.Name + c.Worth.remark()
}
