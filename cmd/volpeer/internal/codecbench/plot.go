package codecbench

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/volsfu/volsfu/pkg/codec"
)

// Plot is a diagram of rows, with a panel for each of several figures over the same axis.
type Plot struct {
	// Name is that of the file, without extension.
	Name   string
	title  string
	x      axis
	panels []axis
	// shows says which rows are in it, series which of them are joined by a line; marks may name points, "" where they do not.
	shows  func(r *Row) bool
	series func(r *Row) string
	marks  func(r *Row) string
}

// axis is what a row has of something; it is false where it has nothing of it.
type axis struct {
	label string
	value func(r *Row) (float64, bool)
	// zero has the axis begin at 0, else with the least value.
	zero bool
}

func always(value func(r *Row) float64) func(r *Row) (float64, bool) {
	return func(r *Row) (float64, bool) { return value(r), true }
}

func decibelsOf(value func(r *Row) *float64) func(r *Row) (float64, bool) {
	return func(r *Row) (float64, bool) {
		if v := value(r); v != nil {
			return *v, true
		}
		return 0, false
	}
}

var (
	levelAxis  = axis{label: "compression level (10 - speed)", value: always(func(r *Row) float64 { return float64(r.Level) })}
	sizeAxis   = axis{label: "size, kB per frame", value: always(func(r *Row) float64 { return float64(r.Bytes) / 1000 }), zero: true}
	encodeAxis = axis{label: "encoding, ms", value: always(func(r *Row) float64 { return r.Encode.Least }), zero: true}
	decodeAxis = axis{label: "decoding, ms", value: always(func(r *Row) float64 { return r.Decode.Least }), zero: true}
	// One thread's time is that of processors, where it is known: other programs disturb it less.
	encodeProcessor = axis{label: "encoding, processor ms", value: always(func(r *Row) float64 { return cmp.Or(r.Encode.Processor, r.Encode.Least) }), zero: true}
	decodeProcessor = axis{label: "decoding, processor ms", value: always(func(r *Row) float64 { return cmp.Or(r.Decode.Processor, r.Decode.Least) }), zero: true}
	densityX        = axis{label: "bits per point", value: always(func(r *Row) float64 { return r.BitsPerPoint })}
	colorAxis       = axis{label: "colours, Y'CbCr PSNR, dB", value: decibelsOf(func(r *Row) *float64 { return r.Color })}
	sizeX           = axis{label: "size, kB per frame", value: sizeAxis.value}
	pointAxis       = axis{label: "geometry, D1 PSNR, dB", value: decibelsOf(func(r *Row) *float64 { return r.PointToPoint })}
	planeAxis       = axis{label: "geometry, D2 PSNR, dB", value: decibelsOf(func(r *Row) *float64 { return r.PointToPlane })}
)

// costs are those on one thread, threadCosts on any number.
var (
	costs       = []axis{sizeAxis, encodeProcessor, decodeProcessor}
	threadCosts = []axis{sizeAxis, encodeAxis, decodeAxis}
)

// Plots are the diagrams of a ladder: those of levels as papers have them, and those of rate and distortion.
func Plots() []Plot {
	full := func(r *Row) bool { return r.Share == 100 && r.usual() }
	return []Plot{
		{Name: "levels", title: "All points, one thread", x: levelAxis, panels: costs,
			shows:  func(r *Row) bool { return full(r) && r.Threads == 1 },
			series: func(r *Row) string { return fmt.Sprintf("%s, colours %s", r.Name, r.colors()) }},
		{Name: "resolution", title: "Fewer points, one thread", x: levelAxis, panels: costs,
			shows:  func(r *Row) bool { return r.Threads == 1 && r.Colors && r.usual() },
			series: func(r *Row) string { return fmt.Sprintf("%s, %g %% of the points", r.Name, r.Share) }},
		{Name: "threads", title: "All points, more threads", x: levelAxis, panels: threadCosts,
			shows:  func(r *Row) bool { return full(r) && r.Colors },
			series: func(r *Row) string { return fmt.Sprintf("%s, threads: %d", r.Name, r.Threads) }},
		{Name: "combined", title: "Fewer points and more threads", x: levelAxis, panels: threadCosts,
			shows:  func(r *Row) bool { return r.Colors && r.usual() && (r.Share == 100) == (r.Threads == 1) },
			series: func(r *Row) string { return fmt.Sprintf("%s, %g %%, threads: %d", r.Name, r.Share, r.Threads) }},
		{Name: "colours", title: "Rate and distortion of colours", x: densityX, panels: []axis{colorAxis},
			shows:  func(r *Row) bool { return r.Share == 100 && r.Threads == 1 && r.Colors },
			series: func(r *Row) string { return fmt.Sprintf("%s, level %d", r.Name, r.Level) },
			marks: func(r *Row) string {
				if r.ColorQuality > 0 {
					return fmt.Sprint(r.ColorQuality)
				}
				return fmt.Sprintf("%d bits", r.ColorBits)
			}},
		{Name: "geometry", title: "Rate and distortion of geometry", x: sizeX, panels: []axis{pointAxis, planeAxis},
			shows: func(r *Row) bool { return r.Threads == 1 && r.usual() },
			series: func(r *Row) string {
				return fmt.Sprintf("%s, colours %s, level %d, %d bits", r.Name, r.colors(), r.Level, r.Bits)
			},
			marks: func(r *Row) string { return fmt.Sprintf("%g %%", r.Share) }},
	}
}

// usual tells whether colours are as they are by default, or none.
func (s *Setting) usual() bool {
	return !s.Colors || s.ColorBits == 8 || s.ColorQuality == codec.DefaultColorQuality
}

// curve is what is joined by a line.
type curve struct {
	name string
	rows []*Row
}

// curves are those of the rows that the plot shows and that have something on all axes, each in the order of the horizontal one.
func (p *Plot) curves(rows []Row) []curve {
	var all []curve
	for i := range rows {
		r := &rows[i]
		if !p.shows(r) || !p.complete(r) {
			continue
		}
		name := p.series(r)
		at := slices.IndexFunc(all, func(c curve) bool { return c.name == name })
		if at < 0 {
			at, all = len(all), append(all, curve{name: name})
		}
		all[at].rows = append(all[at].rows, r)
	}
	for _, c := range all {
		slices.SortStableFunc(c.rows, func(a, b *Row) int { return cmp.Compare(p.x.of(a), p.x.of(b)) })
	}
	return slices.DeleteFunc(all, func(c curve) bool { return len(c.rows) < 2 })
}

func (p *Plot) complete(r *Row) bool {
	_, there := p.x.value(r)
	for _, a := range p.panels {
		_, ok := a.value(r)
		there = there && ok
	}
	return there
}

// of is the value of a row that is known to have one.
func (a *axis) of(r *Row) float64 {
	v, _ := a.value(r)
	return v
}

// Measures of a plot, in pixels.
const (
	width, panelHeight = 900, 260
	left, right        = 70, 250
	top, gap           = 50, 60
)

// palette has the colours of curves, from Okabe and Ito's palette, which people tell apart who see fewer colours; curves beyond that are dashed.
var palette = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"}

// Draw writes the plot as SVG. It is false, and writes nothing, where no two rows make a line.
func (p *Plot) Draw(w io.Writer, rows []Row) (bool, error) {
	curves := p.curves(rows)
	if len(curves) == 0 {
		return false, nil
	}
	height := max(top+len(p.panels)*(panelHeight+gap), top+20*len(curves)+20)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/><text x="%d" y="26" font-size="16">%s</text>`+"\n", width, height, left, html.EscapeString(p.title))
	x := p.x.scale(curves, left, width-right)
	for i := range p.panels {
		bottom := float64(top + i*(panelHeight+gap) + panelHeight)
		d := panel{plot: p, axis: &p.panels[i], x: x, y: p.panels[i].scale(curves, bottom, bottom-panelHeight), bottom: bottom}
		d.draw(&b, curves)
	}
	for i, c := range curves {
		y := float64(top + 10 + 20*i)
		fmt.Fprintf(&b, `<line x1="%d" x2="%d" y1="%.0f" y2="%.0f" %s/><text x="%d" y="%.0f">%s</text>`+"\n",
			width-right+15, width-right+40, y, y, stroke(i), width-right+46, y+4, html.EscapeString(c.name))
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return true, err
}

func stroke(i int) string {
	dash := ""
	if i >= len(palette) {
		dash = ` stroke-dasharray="6 3"`
	}
	return fmt.Sprintf(`fill="none" stroke="%s" stroke-width="1.8"%s`, palette[i%len(palette)], dash)
}

// scale puts values on a line of pixels, from one end to the other.
type scale struct{ low, high, step, from, to float64 }

func (a *axis) scale(curves []curve, from, to float64) scale {
	s := scale{low: math.Inf(1), high: math.Inf(-1), from: from, to: to}
	for _, c := range curves {
		for _, r := range c.rows {
			s.low, s.high = min(s.low, a.of(r)), max(s.high, a.of(r))
		}
	}
	if a.zero {
		s.low = 0
	}
	if s.high-s.low < 1e-9 {
		s.low, s.high = s.low-0.5, s.high+0.5
	}
	s.step = step(s.high - s.low)
	s.low, s.high = math.Floor(s.low/s.step)*s.step, math.Ceil(s.high/s.step)*s.step
	return s
}

func (s *scale) at(v float64) float64 { return s.from + (s.to-s.from)*(v-s.low)/(s.high-s.low) }

// ticks are round values all along the scale.
func (s *scale) ticks() []float64 {
	var all []float64
	for i := math.Round(s.low / s.step); i <= math.Round(s.high/s.step); i++ {
		all = append(all, i*s.step)
	}
	return all
}

// step is a round interval that divides a range into four to ten.
func step(reach float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(reach)))
	switch {
	case reach/power < 2:
		return power / 5
	case reach/power < 5:
		return power / 2
	}
	return power
}

// panel is one diagram.
type panel struct {
	plot   *Plot
	axis   *axis
	x, y   scale
	bottom float64
	// marked are the points that have a mark.
	marked [][2]float64
}

// room tells whether a mark at a point would be read, and takes its place then: marks are about 30 pixels wide and 11 high.
func (d *panel) room(x, y float64) bool {
	for _, m := range d.marked {
		if math.Abs(m[0]-x) < 30 && math.Abs(m[1]-y) < 11 {
			return false
		}
	}
	d.marked = append(d.marked, [2]float64{x, y})
	return true
}

func (d *panel) draw(b *strings.Builder, curves []curve) {
	for _, v := range d.y.ticks() {
		fmt.Fprintf(b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#dddddd"/><text x="%d" y="%.1f" text-anchor="end">%.5g</text>`+"\n",
			left, width-right, d.y.at(v), d.y.at(v), left-6, d.y.at(v)+4, v)
	}
	for _, v := range d.x.ticks() {
		fmt.Fprintf(b, `<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" stroke="black"/><text x="%.1f" y="%.1f" text-anchor="middle">%.5g</text>`+"\n",
			d.x.at(v), d.x.at(v), d.bottom, d.bottom+4, d.x.at(v), d.bottom+17, v)
	}
	fmt.Fprintf(b, `<rect x="%d" y="%.1f" width="%d" height="%d" fill="none" stroke="black"/>`+"\n", left, d.bottom-panelHeight, width-right-left, panelHeight)
	fmt.Fprintf(b, `<text x="%d" y="%.1f" text-anchor="middle">%s</text>`+"\n", (width-right+left)/2, d.bottom+33, html.EscapeString(d.plot.x.label))
	fmt.Fprintf(b, `<text transform="translate(16 %.1f) rotate(-90)" text-anchor="middle">%s</text>`+"\n", d.bottom-panelHeight/2, html.EscapeString(d.axis.label))
	for i, c := range curves {
		fmt.Fprintf(b, `<polyline %s points="`, stroke(i))
		for _, r := range c.rows {
			fmt.Fprintf(b, "%.1f,%.1f ", d.x.at(d.plot.x.of(r)), d.y.at(d.axis.of(r)))
		}
		b.WriteString(`"/>` + "\n")
		for _, r := range c.rows {
			x, y := d.x.at(d.plot.x.of(r)), d.y.at(d.axis.of(r))
			fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`, x, y, palette[i%len(palette)])
			if d.plot.marks != nil && d.room(x, y) {
				fmt.Fprintf(b, `<text x="%.1f" y="%.1f" font-size="10">%s</text>`, x+5, y+11, html.EscapeString(d.plot.marks(r)))
			}
		}
		b.WriteString("\n")
	}
}
