package control

import (
	"fmt"
	"html"
	"io"
	"math"
	"path/filepath"
	"strings"
	"time"
)

// Measures of a plot, in pixels.
const (
	plotWidth, panelHeight = 960, 190
	plotLeft, plotRight    = 80, 20
	panelGap               = 46
	plotTop                = 50
)

// curve is one line of a panel. Steps are drawn where a value holds until the next.
type curve struct {
	name, colour string
	steps        bool
	value        func(*sample) float64
}

// panel is one diagram of a plot.
type panel struct {
	title  string
	curves []curve
}

// panels are the diagrams, one below the other.
var panels = []panel{
	{"Mbit/s", []curve{
		{"capacity", "#888888", true, func(x *sample) float64 { return x.capacity / 1e6 }},
		{"estimate", "#d62728", false, func(x *sample) float64 { return x.estimate / 1e6 }},
		{"sent", "#1f77b4", false, func(x *sample) float64 { return x.sent / 1e6 }},
		{"decodable media", "#2ca02c", false, func(x *sample) float64 { return x.goodput / 1e6 }},
	}},
	{"queue, ms", []curve{{"largest delay", "#9467bd", false, func(x *sample) float64 { return float64(x.queue) / float64(time.Millisecond) }}}},
	{"loss, %", []curve{
		{"at the queue", "#8c564b", false, func(x *sample) float64 {
			return 100 * float64(x.discarded) / max(float64(x.offered), float64(x.discarded), 1)
		}},
		{"in all", "#e377c2", false, func(x *sample) float64 { return 100 * x.loss }},
	}},
}

// Plot writes a diagram of rates, queue and losses over time as SVG. Of several receivers it shows the first.
func (r *Record) Plot(w io.Writer) error {
	samples := r.receivers[0].samples
	height := plotTop + len(panels)*(panelHeight+panelGap)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n",
		plotWidth, height, plotWidth, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", plotWidth, height)
	o := &r.scenario.options
	fmt.Fprintf(&b, `<text x="%d" y="24" font-size="16">%s: %v round trip, queue %s, pacing %s, seed %d</text>`+"\n", plotLeft,
		html.EscapeString(filepath.Base(r.scenario.name)), o.RTT, html.EscapeString(o.Queue), html.EscapeString(string(o.Pacing)), o.Seed)
	for i := range panels {
		d := diagram{top: float64(plotTop + i*(panelHeight+panelGap)), end: o.Duration.Seconds()}
		d.draw(&b, &panels[i], samples)
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// diagram is a panel with its scales.
type diagram struct {
	top, end, most float64
}

func (d *diagram) x(seconds float64) float64 {
	return plotLeft + (plotWidth-plotLeft-plotRight)*seconds/d.end
}

func (d *diagram) y(value float64) float64 { return d.top + panelHeight*(1-value/d.most) }

func (d *diagram) draw(b *strings.Builder, p *panel, samples []sample) {
	d.most = 1
	for _, c := range p.curves {
		for i := range samples {
			d.most = max(d.most, c.value(&samples[i]))
		}
	}
	interval := tick(d.most)
	d.most = math.Ceil(d.most/interval) * interval
	for v := 0.0; v <= d.most+interval/2; v += interval {
		fmt.Fprintf(b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#dddddd"/><text x="%d" y="%.1f" text-anchor="end">%.4g</text>`+"\n",
			plotLeft, plotWidth-plotRight, d.y(v), d.y(v), plotLeft-6, d.y(v)+4, v)
	}
	bottom := d.top + panelHeight
	for t, interval := 0.0, tick(d.end); t <= d.end+1e-9; t += interval {
		fmt.Fprintf(b, `<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" stroke="black"/><text x="%.1f" y="%.1f" text-anchor="middle">%.4g</text>`+"\n",
			d.x(t), d.x(t), bottom, bottom+4, d.x(t), bottom+17, t)
	}
	fmt.Fprintf(b, `<text x="%d" y="%.1f" text-anchor="middle">time, s</text>`+"\n", (plotWidth+plotLeft-plotRight)/2, bottom+30)
	fmt.Fprintf(b, `<rect x="%d" y="%.1f" width="%d" height="%d" fill="none" stroke="black"/>`+"\n", plotLeft, d.top, plotWidth-plotLeft-plotRight, panelHeight)
	fmt.Fprintf(b, `<text transform="translate(18 %.1f) rotate(-90)" text-anchor="middle">%s</text>`+"\n", d.top+panelHeight/2, p.title)
	for i, c := range p.curves {
		d.curve(b, &c, samples)
		x := plotWidth - plotRight - 140*(len(p.curves)-i)
		fmt.Fprintf(b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="%s" stroke-width="2"/><text x="%d" y="%.1f">%s</text>`+"\n",
			x, x+20, d.top-8, d.top-8, c.colour, x+25, d.top-4, c.name)
	}
}

func (d *diagram) curve(b *strings.Builder, c *curve, samples []sample) {
	fmt.Fprintf(b, `<polyline fill="none" stroke="%s" stroke-width="1.2" points="`, c.colour)
	for i := range samples {
		x := &samples[i]
		y := d.y(c.value(x))
		if c.steps {
			fmt.Fprintf(b, "%.1f,%.1f ", d.x((x.at - sampleInterval).Seconds()), y)
		}
		fmt.Fprintf(b, "%.1f,%.1f ", d.x(x.at.Seconds()), y)
	}
	b.WriteString(`"/>` + "\n")
}

// tick is a round interval that divides a scale into five to ten or so.
func tick(most float64) float64 {
	scale := math.Pow(10, math.Floor(math.Log10(most)))
	switch {
	case most/scale < 2:
		return scale / 5
	case most/scale < 5:
		return scale / 2
	}
	return scale
}
