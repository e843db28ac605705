package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/experiment/experimenttest"
)

const marked = `
name: marked
title: The validity of figures
scenario: test/waves
iterations: 1
seconds: 1
parameters: {frames: 100}
matrix:
  - {height: [8, 9], fate: [good, slow]}
  - {height: 9, fate: late}
comparisons:
  - {name: among good ones, figure: latency, of: {height: 9, fate: good}, to: {height: 8, fate: good}, as: ratio}
  - {name: to a slow one, figure: latency, of: {height: 8, fate: good}, to: {height: 8, fate: slow}, as: ratio}
  - {name: of a late one, figure: latency, of: {height: 9, fate: late}, to: {height: 8, fate: slow}, as: ratio}
plots:
  - {name: bars, title: Bars, kind: bars, x: [height], split: [fate], figures: [latency]}
  - {name: groups, title: Groups, kind: bars, x: [fate], where: {height: 8}, figures: [latency]}
  - {name: stacked, title: Stacked, kind: stacked, x: [fate], where: {height: 8},
     figures: [encode, decode], label: time}
  - {name: lines, title: Lines, kind: lines, x: [height], x_label: height, split: [fate], figures: [latency]}
  - {name: mixed, title: Mixed, kind: lines, x: [height], x_label: height, where: {height: 8}, figures: [latency]}
  - {name: shares, title: Shares, kind: distribution, split: [fate], where: {height: 9}, figures: [latency]}
  - {name: time, title: Time, kind: series, split: [fate], where: {height: 9},
     series: [latency over time], label: latency}
why: It is the sea.
`

// TestMarks: a relation or a plot based on iterations that are not valid is marked.
func TestMarks(t *testing.T) {
	e := experimenttest.Parse(t, experimenttest.Run, marked)
	r := experimenttest.Result(t, e, experiment.Options{})
	for i, want := range []experiment.Validity{experiment.Valid, experiment.CPUBound, experiment.Invalid} {
		c := r.Comparisons[i]
		if text := ours(c); c.Worth != want || strings.HasSuffix(text,
			"("+string(want)+")") != (want != experiment.Valid) {
			t.Errorf("%s has the validity %q and the text %q, want %s", c.Name, c.Worth, text, want)
		}
	}
	var text bytes.Buffer
	if err := WriteText(r, &text); err != nil || !strings.Contains(text.String(),
		"to a slow one: "+ours(r.Comparisons[1])) {
		t.Errorf("the text does not state the validity of a relation: %v\n%s", err, text.String())
	}
	want := map[string]string{
		"bars": "[good slow (cpu-bound) late (invalid)]", "groups": "[latency] of [good slow\n(cpu-bound)]",
		"stacked": "[encoding decoding] of [good slow\n(cpu-bound)]",
		"lines":   "[good slow (cpu-bound) late (invalid)]", "mixed": "[latency (in part cpu-bound)]",
		"shares": "[good slow (cpu-bound) late (invalid)]",
		"time":   "[good slow (cpu-bound) late (invalid)]",
	}
	for i := range e.Plots {
		p := &e.Plots[i]
		d := draw(r, p)
		var names []string
		for _, b := range d.Panels[0].Bars {
			names = append(names, b.Name)
		}
		for _, c := range d.Panels[0].Curves {
			names = append(names, c.Name)
		}
		got := fmt.Sprint(names)
		if len(p.Split) == 0 && d.Groups != nil {
			got += fmt.Sprint(" of ", d.Groups)
		}
		if got != want[p.Name] {
			t.Errorf("%s: the names are %q, want %q", p.Name, got, want[p.Name])
		}
	}
}

// TestStackedPaper: the paper's values of stacked figures are shown beside the cells if they are the same for all
// cells.
func TestStackedPaper(t *testing.T) {
	references := `
references:
  - {cell: {}, figure: encode, value: 7}
  - {cell: {fate: good}, figure: decode, value: 3}
`
	for _, test := range []struct{ references, want string }{
		{references, "[good slow\n(cpu-bound) the paper] encoding 2:7 decoding 2:3"},
		{references + "  - {cell: {fate: slow}, figure: decode, value: 4}\n",
			"[good slow\n(cpu-bound) the paper] encoding 2:7"},
	} {
		e := experimenttest.Parse(t, experimenttest.Run, marked+test.references)
		r := experimenttest.Result(t, e, experiment.Options{})
		d := draw(r, &e.Plots[2])
		got := fmt.Sprint(d.Groups)
		for _, b := range d.Panels[0].Bars {
			for _, p := range b.Points {
				if p.X == 2 {
					got += fmt.Sprintf(" %s 2:%g", b.Name, p.Y)
				}
			}
		}
		if got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}
