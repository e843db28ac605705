package plot

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// legend is the legend beside the panels. It is empty if there is only one name.
type legend struct {
	entries       plot.Legend
	width, height vg.Length
}

// maxLegend is the largest width of the legend.
const maxLegend = diagramWidth * 2 / 5

// otherFonts is the factor by which texts may be wider if a page uses another font than the measured one. DejaVu Sans
// is wider by about a fifth.
const otherFonts = 1.2

func (d *Diagram) legend() legend {
	names := d.names()
	l := legend{entries: plot.NewLegend()}
	if len(names) < 2 {
		return l
	}
	looks := colours(names)
	l.entries.Top, l.entries.Left = true, true
	l.entries.Padding = vg.Points(4)
	l.entries.ThumbnailWidth = vg.Points(18)
	set(&l.entries.TextStyle, textSize, ink)
	for _, name := range names {
		l.entries.Add(name, sample{looks[name], d.kindOf(name)})
		l.width = max(l.width, l.entries.TextStyle.Width(name))
		l.height += l.entries.TextStyle.Height(name) + l.entries.Padding
	}
	l.width = min(l.width*otherFonts+l.entries.ThumbnailWidth+vg.Points(legendGap+8), vg.Points(maxLegend))
	return l
}

func (l *legend) draw(c draw.Canvas) {
	if l.width > 0 {
		l.entries.Draw(c)
	}
}

// kindOf returns the kind of a name's first curve, or barKind. A name of neither is that of the references.
func (d *Diagram) kindOf(name string) Kind {
	for i := range d.Panels {
		for _, b := range d.Panels[i].Bars {
			if b.Name == name {
				return barKind
			}
		}
		for _, c := range d.Panels[i].Curves {
			if c.Name == name {
				return c.Kind
			}
		}
	}
	return Reference
}

// barKind is the kind of bars in the legend.
const barKind Kind = -1

// sample draws the style of a name in the legend.
type sample struct {
	look look
	kind Kind
}

// Thumbnail implements plot.Thumbnailer.
func (s sample) Thumbnail(c *draw.Canvas) {
	middle := vg.Point{X: (c.Min.X + c.Max.X) / 2, Y: (c.Min.Y + c.Max.Y) / 2}
	switch s.kind {
	case barKind:
		c.FillPolygon(s.look.fill(), []vg.Point{{X: c.Min.X + 3, Y: c.Min.Y}, {X: c.Min.X + 3, Y: c.Max.Y},
			{X: c.Max.X - 3, Y: c.Max.Y}, {X: c.Max.X - 3, Y: c.Min.Y}})
	case Reference:
		c.DrawGlyph(referenceDot(ink), middle)
	case Dots:
		c.DrawGlyph(s.look.dot(), middle)
	default:
		c.StrokeLine2(s.look.line(), c.Min.X, middle.Y, c.Max.X, middle.Y)
		if s.kind == LineAndDots {
			c.DrawGlyph(s.look.dot(), middle)
		}
	}
}
