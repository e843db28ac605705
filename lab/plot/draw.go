package plot

import (
	"bytes"
	"fmt"
	"html"
	"image/color"
	"io"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// WriteSVG writes the diagram as one svg element, which can be a file or part of a page. The error wraps ErrEmpty if
// there is nothing to draw.
func (d *Diagram) WriteSVG(w io.Writer) error {
	if d.empty() {
		return fmt.Errorf("%q: %w", d.Title, ErrEmpty)
	}
	legend := d.legend()
	height := vg.Points(float64(len(d.Panels)*panelHeight + axisHeight + d.groupLines()*groupHeight))
	height = max(height, legend.height+vg.Points(axisHeight))
	canvas := vgsvg.New(vg.Points(diagramWidth), height)
	whole := draw.New(canvas)
	whole.SetColor(color.White)
	whole.Fill(whole.Rectangle.Path())
	whole = draw.Crop(whole, vg.Points(4), -vg.Points(6), vg.Points(4), -vg.Points(6))
	area := draw.Crop(whole, 0, -legend.width, 0, 0)

	plots := make([][]*plot.Plot, len(d.Panels))
	for i := range d.Panels {
		p, err := d.panel(i)
		if err != nil {
			return fmt.Errorf("%q: %w", d.Title, err)
		}
		plots[i] = []*plot.Plot{p}
	}
	tiles := draw.Tiles{Rows: len(plots), Cols: 1, PadY: vg.Points(10)}
	for i, row := range plot.Align(plots, tiles, area) {
		plots[i][0].Draw(row[0])
	}
	legend.draw(draw.Crop(whole, whole.Max.X-whole.Min.X-legend.width+vg.Points(legendGap), 0, 0,
		-vg.Points(titleSize*2)))
	return write(w, canvas, d.Title)
}

// write finishes the SVG: it removes the text before the element, adds a title for screen readers, and adds fonts that
// browsers have.
func write(w io.Writer, canvas *vgsvg.Canvas, title string) error {
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return err
	}
	svg := b.String()
	if at := strings.Index(svg, "<svg"); at >= 0 {
		svg = svg[at:]
	}
	svg = strings.ReplaceAll(svg, "font-family:Liberation Sans;",
		"font-family:'Liberation Sans',Arial,Helvetica,sans-serif;")
	svg = strings.Replace(svg, "<svg ", `<svg role="img" `, 1)
	svg = strings.Replace(svg, ">\n", ">\n<title>"+html.EscapeString(strings.ReplaceAll(title, "\n", " "))+"</title>\n",
		1)
	_, err := io.WriteString(w, svg)
	return err
}

// groupLines returns the number of lines of the longest group name after the first line.
func (d *Diagram) groupLines() int {
	lines := 0
	for _, name := range d.Groups {
		lines = max(lines, strings.Count(name, "\n"))
	}
	return lines
}

// panel prepares one panel. The title is above the first panel, the label of the horizontal axis below the last.
func (d *Diagram) panel(i int) (*plot.Plot, error) {
	p := plot.New()
	d.styleAxes(p, i)
	p.Add(&plotter.Grid{Horizontal: draw.LineStyle{Color: grid, Width: vg.Points(0.6)}, Vertical: d.verticalGrid()})
	if err := d.content(p, &d.Panels[i]); err != nil {
		return nil, err
	}
	d.fit(p, &d.Panels[i])
	return p, d.limits(p, &d.Panels[i])
}

func (d *Diagram) verticalGrid() draw.LineStyle {
	if d.Groups != nil {
		return draw.LineStyle{}
	}
	return draw.LineStyle{Color: grid, Width: vg.Points(0.6)}
}

func (d *Diagram) styleAxes(p *plot.Plot, i int) {
	if i == 0 {
		p.Title.Text = d.Title
		p.Title.Padding = vg.Points(8)
	}
	set(&p.Title.TextStyle, titleSize, ink)
	if i == len(d.Panels)-1 {
		p.X.Label.Text = d.X.Label
	}
	p.Y.Label.Text = d.Panels[i].Y.Label
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		set(&a.Label.TextStyle, textSize, ink)
		set(&a.Tick.Label, textSize-0.5, ink)
		a.Label.Padding = vg.Points(3)
		a.Padding = 0
		a.Color, a.Tick.Color = frame, frame
		a.Tick.Length = vg.Points(4)
		a.Tick.Marker = ticks{}
	}
	p.X.Tick.Marker = ticks{whole: d.X.Whole}
	if d.Panels[i].Y.Log {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, decades{}
	}
	if d.X.Log {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, decades{}
	}
	if d.Groups != nil {
		named := make([]plot.Tick, len(d.Groups))
		for at, name := range d.Groups {
			named[at] = plot.Tick{Value: float64(at), Label: name}
		}
		p.X.Tick.Marker = plot.ConstantTicks(named)
		p.X.Tick.Color = color.Transparent
	}
}

// fit sets the ranges of the axes to the drawn values, rounded to the next tick, so that nothing touches the frame.
func (d *Diagram) fit(p *plot.Plot, panel *Panel) {
	for _, l := range panel.Limits {
		if panel.Y.drawable(l.Value) {
			p.Y.Min, p.Y.Max = min(p.Y.Min, l.Value), max(p.Y.Max, l.Value)
		}
	}
	if (panel.Y.FromZero || len(panel.Bars) > 0) && !panel.Y.Log {
		p.Y.Min, p.Y.Max = min(p.Y.Min, 0), max(p.Y.Max, 0)
		if p.Y.Min == p.Y.Max {
			p.Y.Max = 1 // all values are zero
		}
	}
	widen(&p.Y, panel.Y.Log)
	if d.Groups != nil {
		p.X.Min, p.X.Max = -0.5, float64(len(d.Groups))-0.5
		return
	}
	if d.X.FromZero && !d.X.Log {
		p.X.Min = min(p.X.Min, 0)
	}
	widen(&p.X, d.X.Log)
}

// widen extends a range to round values.
func widen(a *plot.Axis, log bool) {
	if !isFinite(a.Min) || !isFinite(a.Max) {
		a.Min, a.Max = 0, 1
		if log {
			a.Min, a.Max = 1, 10
		}
		return
	}
	if log {
		a.Min, a.Max = math.Pow(10, math.Floor(math.Log10(a.Min))), math.Pow(10, math.Ceil(math.Log10(a.Max)))
		if a.Min == a.Max {
			a.Max *= 10
		}
		return
	}
	if reach := a.Max - a.Min; reach < 1e-9*max(1, math.Abs(a.Max)) {
		half := max(0.5, math.Abs(a.Max)/10)
		a.Min, a.Max = a.Min-half, a.Max+half
	}
	step := stepOf(a.Max - a.Min)
	a.Min, a.Max = math.Floor(a.Min/step+1e-9)*step, math.Ceil(a.Max/step-1e-9)*step
}

// limits draws the limits above everything else, with their labels on the right.
func (d *Diagram) limits(p *plot.Plot, panel *Panel) error {
	for _, l := range panel.Limits {
		if !panel.Y.drawable(l.Value) {
			continue
		}
		line, err := plotter.NewLine(plotter.XYs{{X: p.X.Min, Y: l.Value}, {X: p.X.Max, Y: l.Value}})
		if err != nil {
			return err
		}
		line.LineStyle = draw.LineStyle{Color: alarm, Width: vg.Points(0.9),
			Dashes: []vg.Length{vg.Points(5), vg.Points(3)}}
		words, err := plotter.NewLabels(plotter.XYLabels{XYs: plotter.XYs{{X: p.X.Max, Y: l.Value}},
			Labels: []string{l.Label}})
		if err != nil {
			return err
		}
		words.TextStyle = []text.Style{{Color: alarm, Font: face(textSize - 1.5), XAlign: draw.XRight,
			YAlign: draw.YBottom, Handler: plot.DefaultTextHandler}}
		words.Offset = vg.Point{X: -vg.Points(3), Y: vg.Points(1.5)}
		p.Add(line, words)
	}
	return nil
}
