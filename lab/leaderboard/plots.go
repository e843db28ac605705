package leaderboard

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/volsfu/volsfu/lab/plot"
)

// writePlots writes the plots of a board to a folder.
func (b *Board) writePlots(folder string) error {
	var failed error
	write := func(name string, d *plot.Diagram) {
		file, err := os.Create(filepath.Join(folder, name))
		if err != nil {
			failed = errors.Join(failed, err)
			return
		}
		err = d.WriteSVG(file)
		if errors.Is(err, plot.ErrEmpty) {
			err = nil
		}
		failed = errors.Join(failed, err, file.Close())
	}
	if links := b.part(false); len(links) > 0 {
		write("leaderboard-held-out.svg", b.scatter("Recorded links that were not used to change GCC", links))
	}
	if links := b.part(true); len(links) > 0 {
		write("leaderboard-tuned.svg", b.scatter("Recorded links that were used to change GCC", links))
	}
	if links := b.part(false); len(links) > 0 {
		write("leaderboard-links.svg", b.bars(links))
	}
	return failed
}

// scatter draws each entry's utilisation over its latency, with the intervals of the utilisation. A line shows the
// utilisation of the yardstick that learns of the link a round trip late.
func (b *Board) scatter(title string, links []Link) *plot.Diagram {
	d := &plot.Diagram{Title: title, X: plot.Axis{Label: "frame latency, p95, mean of links, ms", FromZero: true}}
	used := plot.Panel{Y: plot.Axis{Label: "utilisation, %", FromZero: true},
		Limits: []plot.Limit{{Value: 85, Label: "target"}}}
	lost := plot.Panel{Y: plot.Axis{Label: "undecodable frames, %", FromZero: true}}
	for _, r := range b.rows(links) {
		if r.Entry.Yardstick {
			if r.Entry.Name == "knows-link-late" {
				used.Limits = append(used.Limits, plot.Limit{Value: r.Utilisation.Mean, Label: r.Entry.Name})
			}
			continue
		}
		used.Curves = append(used.Curves, plot.Curve{Name: r.Entry.Label(), Kind: plot.Dots,
			Points: []plot.Point{point(r.Latency, r.Utilisation)}})
		lost.Curves = append(lost.Curves, plot.Curve{Name: r.Entry.Label(), Kind: plot.Dots,
			Points: []plot.Point{point(r.Latency, r.Undecodable)}})
	}
	d.Panels = []plot.Panel{used, lost}
	return d
}

func point(x, y Figure) plot.Point {
	p := plot.Point{X: x.Mean, Y: y.Mean}
	if y.Interval != nil {
		p.Low, p.High = max(y.Interval.Low, 0), y.Interval.High
	}
	return p
}

// bars draws the figures of some entries on each link.
func (b *Board) bars(links []Link) *plot.Diagram {
	d := &plot.Diagram{Title: "Utilisation and frame latency on each link",
		X: plot.Axis{Label: "links in the order of the table"}}
	used := plot.Panel{Y: plot.Axis{Label: "utilisation, %"}, Limits: []plot.Limit{{Value: 85, Label: "target"}}}
	late := plot.Panel{Y: plot.Axis{Label: "frame latency, p95, ms"},
		Limits: []plot.Limit{{Value: 100, Label: "target"}}}
	numbers := map[string]int{}
	for i := range links {
		numbers[links[i].Kind]++
		d.Groups = append(d.Groups, fmt.Sprint(links[i].Kind, " ", numbers[links[i].Kind]))
	}
	for _, e := range b.Controllers() {
		name := e.Name
		if name == "volsfu-l4s-dualpi2" || name == "pion" {
			// Five bars per link can be told apart. The first has another queue, the second a known defect.
			continue
		}
		var utilisation, latency plot.Bars
		utilisation.Name, latency.Name = e.Label(), e.Label()
		for i := range links {
			of := func(f func(*Cell) float64) plot.Point {
				v := figureOf(b.values(name, links[i].Name, func(c *Cell) (float64, bool) { return f(c), true }))
				return plot.Point{X: float64(i), Y: v.Mean}
			}
			utilisation.Points = append(utilisation.Points, of(func(c *Cell) float64 { return c.Utilisation }))
			latency.Points = append(latency.Points, of(func(c *Cell) float64 { return c.Latency }))
		}
		used.Bars, late.Bars = append(used.Bars, utilisation), append(late.Bars, latency)
	}
	d.Panels = []plot.Panel{used, late}
	return d
}
