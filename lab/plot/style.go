package plot

import (
	"image/color"
	"math"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Dimensions, in points.
const (
	diagramWidth = 640
	panelHeight  = 190
	// axisHeight is the height of titles and the horizontal axis in addition to the panels. groupHeight is the height
	// of a further line of group names.
	axisHeight, groupHeight = 66, 12
	legendGap               = 14
	textSize, titleSize     = 9.5, 12
)

// palette is the palette of Okabe and Ito, which people with colour vision deficiency can distinguish, with strong
// colours first. After the last colour, the palette is repeated with dashed lines and lighter bars.
var palette = []color.RGBA{
	{0x00, 0x72, 0xb2, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff}, {0xcc, 0x79, 0xa7, 0xff},
	{0xe6, 0x9f, 0x00, 0xff}, {0x56, 0xb4, 0xe9, 0xff}, {0x7a, 0x7a, 0x7a, 0xff},
}

var (
	ink   = color.RGBA{0x22, 0x22, 0x22, 0xff}
	grid  = color.RGBA{0xe3, 0xe3, 0xe3, 0xff}
	frame = color.RGBA{0x99, 0x99, 0x99, 0xff}
	alarm = color.RGBA{0xb0, 0x20, 0x20, 0xff}
)

// colours assigns a look to each name.
func colours(names []string) map[string]look {
	looks := make(map[string]look)
	for i, name := range names {
		looks[name] = look{palette[i%len(palette)], i / len(palette)}
	}
	return looks
}

// look is a colour and the number of previous rounds through the palette.
type look struct {
	colour color.RGBA
	round  int
}

// line returns the style of a curve.
func (l look) line() draw.LineStyle {
	style := draw.LineStyle{Color: l.colour, Width: vg.Points(1.4)}
	if l.round > 0 {
		style.Dashes = []vg.Length{vg.Points(float64(6 / l.round)), vg.Points(3)}
	}
	return style
}

// fill returns the colour of bars, lighter in each round.
func (l look) fill() color.Color {
	c := l.colour
	for range l.round {
		c.R, c.G, c.B = c.R+(255-c.R)/2, c.G+(255-c.G)/2, c.B+(255-c.B)/2
	}
	return c
}

func (l look) dot() draw.GlyphStyle {
	return draw.GlyphStyle{Color: l.colour, Radius: vg.Points(2.6), Shape: draw.CircleGlyph{}}
}

// referenceDot returns a hollow diamond.
func referenceDot(paint color.Color) draw.GlyphStyle {
	return draw.GlyphStyle{Color: paint, Radius: vg.Points(4), Shape: diamond{}}
}

// diamond is a square on its corner, filled white, so that it is visible on bars and beside them.
type diamond struct{}

// DrawGlyph implements draw.GlyphDrawer.
func (diamond) DrawGlyph(c *draw.Canvas, style draw.GlyphStyle, at vg.Point) {
	r := style.Radius
	var path vg.Path
	path.Move(vg.Point{X: at.X - r, Y: at.Y})
	path.Line(vg.Point{X: at.X, Y: at.Y + r})
	path.Line(vg.Point{X: at.X + r, Y: at.Y})
	path.Line(vg.Point{X: at.X, Y: at.Y - r})
	path.Close()
	c.SetColor(color.White)
	c.Fill(path)
	c.SetLineStyle(draw.LineStyle{Color: style.Color, Width: vg.Points(1.1)})
	c.Stroke(path)
}

// face returns the font of all texts. Its metrics are those of the font in the gonum module. A page without a font of
// this name uses a similar font.
func face(size float64) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Points(size)}
}

// set applies the font and a colour to a style.
func set(style *text.Style, size float64, c color.Color) {
	style.Font, style.Color = face(size), c
}

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
