package control

import (
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/volsfu/volsfu/lab/plot"
)

// curve is one line of a panel. If steps is set, each value is valid until the next.
type curve struct {
	name  string
	steps bool
	value func(*sample) float64
}

// panel is one area of the diagram.
type panel struct {
	title  string
	curves []curve
}

// panels lists the areas from top to bottom.
var panels = []panel{
	{"Mbit/s", []curve{
		{"capacity", true, func(x *sample) float64 { return x.capacity / 1e6 }},
		{"estimate", false, func(x *sample) float64 { return x.estimate / 1e6 }},
		{"sent", false, func(x *sample) float64 { return x.sent / 1e6 }},
		{"decodable media", false, func(x *sample) float64 { return x.goodput / 1e6 }},
	}},
	{"queue, ms",
		[]curve{{"largest delay", false,
			func(x *sample) float64 { return float64(x.queue) / float64(time.Millisecond) }}}},
	{"loss, %", []curve{
		{"at the queue", false, func(x *sample) float64 {
			return 100 * float64(x.discarded) / max(float64(x.offered), float64(x.discarded), 1)
		}},
		{"in all", false, func(x *sample) float64 { return 100 * x.loss }},
	}},
}

// Plot writes a diagram of rates, queue and losses over time as SVG. If there are several receivers, the diagram shows
// the first.
func (r *Record) Plot(w io.Writer) error {
	o := &r.scenario.options
	d := plot.Diagram{
		Title: fmt.Sprintf("%s: %v round trip, queue %s, pacing %s, seed %d", filepath.Base(r.scenario.name), o.RTT,
			o.Queue, string(o.Pacing), o.Seed),
		X: plot.Axis{Label: "time, s", FromZero: true},
	}
	samples := r.receivers[0].samples
	for i := range panels {
		p := plot.Panel{Y: plot.Axis{Label: panels[i].title, FromZero: true}}
		for _, c := range panels[i].curves {
			p.Curves = append(p.Curves, c.over(samples))
		}
		d.Panels = append(d.Panels, p)
	}
	return d.WriteSVG(w)
}

// over returns the curve over samples; each sample covers the interval that ends at its time.
func (c *curve) over(samples []sample) plot.Curve {
	drawn := plot.Curve{Name: c.name}
	if c.steps {
		drawn.Kind = plot.Steps
	}
	for i := range samples {
		x := &samples[i]
		drawn.Points = append(drawn.Points, plot.Point{X: x.at.Seconds(), Y: c.value(x)})
	}
	return drawn
}
