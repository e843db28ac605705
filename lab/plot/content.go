package plot

import (
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// groupWidth is the fraction of a group's width that its bars use.
const groupWidth = 0.8

// content adds bars and curves to a plot.
func (d *Diagram) content(p *plot.Plot, panel *Panel) error {
	looks := colours(d.names())
	if err := d.bars(p, panel, looks); err != nil {
		return err
	}
	// References are drawn last, above the values to which they belong.
	for _, last := range []bool{false, true} {
		for i := range panel.Curves {
			c := &panel.Curves[i]
			if (c.Kind == Reference) != last {
				continue
			}
			if err := d.curve(p, panel, c, looks[orElse(c.Like, c.Name)]); err != nil {
				return err
			}
		}
	}
	return nil
}

func orElse(text, otherwise string) string {
	if text != "" {
		return text
	}
	return otherwise
}

// bars adds all bars of a panel and their references.
func (d *Diagram) bars(p *plot.Plot, panel *Panel, looks map[string]look) error {
	width := groupWidth
	if !panel.Stacked {
		width /= float64(max(len(panel.Bars), 1))
	}
	heights := make(map[float64]float64)
	var ends, references []Point
	for i, b := range panel.Bars {
		shift := -groupWidth / 2
		if !panel.Stacked {
			shift += float64(i) * width
		}
		for _, point := range b.Points {
			if !panel.Y.drawable(point.Y) || !isFinite(point.X) {
				continue
			}
			low, high := panel.span(point, heights)
			left := point.X + shift
			if err := bar(p, left, left+width*barWidth, low, high, looks[b.Name].fill()); err != nil {
				return err
			}
			rise := high - point.Y
			ends = append(ends, Point{X: left + width*barWidth/2, Y: high, Low: point.Low + rise,
				High: point.High + rise})
		}
		for _, r := range b.References {
			r.X += shift + width*barWidth*referencePlace
			references = append(references, r)
		}
	}
	if err := intervals(p, panel, ends, ink); err != nil {
		return err
	}
	return d.curve(p, panel, &Curve{Kind: Reference, Points: references}, look{colour: ink})
}

// barWidth is the fraction of a bar's slot that the bar uses. References are drawn to the right of the bar's centre,
// beside the interval.
const (
	barWidth       = 0.94
	referencePlace = 0.75
)

// span returns the lower and the upper end of a bar. A stacked bar begins at the end of the previous one. heights has
// the ends of all groups.
func (p *Panel) span(point Point, heights map[float64]float64) (low, high float64) {
	switch {
	case p.Y.Log:
		return math.Pow(10, math.Floor(math.Log10(point.Y))), point.Y
	case p.Stacked:
		low = heights[point.X]
		heights[point.X] += point.Y
		return low, low + point.Y
	}
	return 0, point.Y
}

// bar adds one rectangle.
func bar(p *plot.Plot, left, right, low, high float64, fill color.Color) error {
	rectangle, err := plotter.NewPolygon(plotter.XYs{{X: left, Y: low}, {X: left, Y: high}, {X: right, Y: high},
		{X: right, Y: low}})
	if err != nil {
		return err
	}
	rectangle.Color = fill
	rectangle.LineStyle = draw.LineStyle{}
	p.Add(rectangle)
	return nil
}

// curve adds one curve.
func (d *Diagram) curve(p *plot.Plot, panel *Panel, c *Curve, l look) error {
	var points plotter.XYs
	var shown []Point
	for _, point := range c.Points {
		if d.X.drawable(point.X) && panel.Y.drawable(point.Y) {
			points = append(points, plotter.XY{X: point.X, Y: point.Y})
			shown = append(shown, point)
		}
	}
	if len(points) == 0 {
		return nil
	}
	paint := l.colour
	if c.Kind == Reference && c.Like == "" {
		paint = ink
	}
	if err := intervals(p, panel, shown, paint); err != nil {
		return err
	}
	if c.Kind == Line || c.Kind == LineAndDots || c.Kind == Steps {
		line, err := plotter.NewLine(points)
		if err != nil {
			return err
		}
		line.LineStyle = l.line()
		if c.Kind == Steps {
			line.StepStyle = plotter.PreStep
		}
		p.Add(line)
	}
	if c.Kind == LineAndDots || c.Kind == Dots || c.Kind == Reference {
		dots, err := plotter.NewScatter(points)
		if err != nil {
			return err
		}
		dots.GlyphStyle = l.dot()
		if c.Kind == Reference {
			dots.GlyphStyle = referenceDot(paint)
		}
		p.Add(dots)
	}
	p.Add(marks(shown))
	return nil
}

// intervals adds the error bars of points.
func intervals(p *plot.Plot, panel *Panel, points []Point, paint color.Color) error {
	var data struct {
		plotter.XYs
		plotter.YErrors
	}
	for _, point := range points {
		if point.Low < point.High && panel.Y.drawable(point.Low) && panel.Y.drawable(point.High) {
			middle := (point.Low + point.High) / 2
			data.XYs = append(data.XYs, plotter.XY{X: point.X, Y: middle})
			data.YErrors = append(data.YErrors, struct{ Low, High float64 }{middle - point.Low, point.High - middle})
		}
	}
	if len(data.XYs) == 0 {
		return nil
	}
	bars, err := plotter.NewYErrorBars(data)
	if err != nil {
		return err
	}
	bars.LineStyle = draw.LineStyle{Color: paint, Width: vg.Points(1)}
	bars.CapWidth = vg.Points(5)
	p.Add(bars)
	return nil
}
