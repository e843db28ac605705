package codecbench

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/volsfu/volsfu/lab/plot"
	"github.com/volsfu/volsfu/pkg/codec"
)

// Plot is a diagram of rows, with one panel for each figure over a common axis.
type Plot struct {
	// Name is the name of the file, without extension.
	Name   string
	title  string
	x      axis
	panels []axis
	// shows selects the rows of the plot. series returns the name of a row's line. marks returns the label of a point,
	// or ""; marks may be nil.
	shows  func(r *Row) bool
	series func(r *Row) string
	marks  func(r *Row) string
}

// axis is a figure of a row. value returns false if the row does not have the figure.
type axis struct {
	label string
	value func(r *Row) (float64, bool)
	// zero makes the axis begin at 0. Without zero, the axis begins with the smallest value.
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
	levelAxis = axis{label: "compression level (10 - speed)",
		value: always(func(r *Row) float64 { return float64(r.Level) })}
	sizeAxis = axis{label: "size, kB per frame",
		value: always(func(r *Row) float64 { return float64(r.Bytes) / 1000 }), zero: true}
	encodeAxis = axis{label: "encoding, ms", value: always(func(r *Row) float64 { return r.Encode.Least }), zero: true}
	decodeAxis = axis{label: "decoding, ms", value: always(func(r *Row) float64 { return r.Decode.Least }), zero: true}
	// For one thread, the processor time is used if it is known, because other programs disturb it less.
	encodeProcessor = axis{label: "encoding, processor ms",
		value: always(func(r *Row) float64 { return cmp.Or(r.Encode.Processor, r.Encode.Least) }), zero: true}
	decodeProcessor = axis{label: "decoding, processor ms",
		value: always(func(r *Row) float64 { return cmp.Or(r.Decode.Processor, r.Decode.Least) }), zero: true}
	densityX  = axis{label: "bits per point", value: always(func(r *Row) float64 { return r.BitsPerPoint })}
	colorAxis = axis{label: "colours, Y'CbCr PSNR, dB",
		value: decibelsOf(func(r *Row) *float64 { return r.Color })}
	sizeX     = axis{label: "size, kB per frame", value: sizeAxis.value}
	pointAxis = axis{label: "geometry, D1 PSNR, dB",
		value: decibelsOf(func(r *Row) *float64 { return r.PointToPoint })}
	planeAxis = axis{label: "geometry, D2 PSNR, dB",
		value: decibelsOf(func(r *Row) *float64 { return r.PointToPlane })}
)

// costs are the panels for one thread, threadCosts those for several threads.
var (
	costs       = []axis{sizeAxis, encodeProcessor, decodeProcessor}
	threadCosts = []axis{sizeAxis, encodeAxis, decodeAxis}
)

// Plots returns the diagrams of a ladder: costs by compression level as in the literature, and rate-distortion
// diagrams.
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

// usual reports whether the colours have their default quality, or are absent.
func (s *Setting) usual() bool {
	return !s.Colors || s.ColorBits == 8 || s.ColorQuality == codec.DefaultColorQuality
}

// curve is a set of rows that are joined by a line.
type curve struct {
	name string
	rows []*Row
}

// curves returns the curves of the rows that the plot shows and that have all figures, each in order of the horizontal
// axis. Curves with fewer than two rows are omitted.
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

// of returns the figure of a row that has the figure.
func (a *axis) of(r *Row) float64 {
	v, _ := a.value(r)
	return v
}

// Draw writes the plot as SVG. If no curve has two rows, Draw returns false and writes nothing.
func (p *Plot) Draw(w io.Writer, rows []Row) (bool, error) {
	curves := p.curves(rows)
	if len(curves) == 0 {
		return false, nil
	}
	d := plot.Diagram{Title: p.title, X: plot.Axis{Label: p.x.label, FromZero: p.x.zero}}
	for i := range p.panels {
		a := &p.panels[i]
		panel := plot.Panel{Y: plot.Axis{Label: a.label, FromZero: a.zero}}
		for _, c := range curves {
			panel.Curves = append(panel.Curves, p.drawn(c, a))
		}
		d.Panels = append(d.Panels, panel)
	}
	return true, d.WriteSVG(w)
}

// drawn returns a curve in the panel of an axis.
func (p *Plot) drawn(c curve, a *axis) plot.Curve {
	drawn := plot.Curve{Name: c.name, Kind: plot.LineAndDots}
	for _, r := range c.rows {
		point := plot.Point{X: p.x.of(r), Y: a.of(r)}
		if p.marks != nil {
			point.Mark = p.marks(r)
		}
		drawn.Points = append(drawn.Points, point)
	}
	return drawn
}
