package plot

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// marks draws the labels of points, to the lower right of each point. A label that would overlap another label of its
// curve is omitted.
type marks []Point

// Plot implements plot.Plotter.
func (m marks) Plot(c draw.Canvas, p *plot.Plot) {
	style := text.Style{Color: ink, Font: face(textSize - 2), XAlign: draw.XLeft, YAlign: draw.YTop,
		Handler: plot.DefaultTextHandler}
	xs, ys := p.Transforms(&c)
	var taken []vg.Rectangle
	for _, point := range m {
		if point.Mark == "" {
			continue
		}
		at := vg.Point{X: xs(point.X) + vg.Points(3), Y: ys(point.Y) - vg.Points(2)}
		box := style.Rectangle(point.Mark).Add(at)
		if overlaps(taken, box) {
			continue
		}
		taken = append(taken, box)
		c.FillText(style, at, point.Mark)
	}
}

func overlaps(taken []vg.Rectangle, box vg.Rectangle) bool {
	for _, t := range taken {
		if box.Min.X < t.Max.X && t.Min.X < box.Max.X && box.Min.Y < t.Max.Y && t.Min.Y < box.Max.Y {
			return true
		}
	}
	return false
}
