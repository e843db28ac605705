package experiment_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/experiment/experimenttest"
)

func TestMatrix(t *testing.T) {
	e := waves(t)
	var names []string
	var short []bool
	for _, c := range e.Cells() {
		names, short = append(names, c.Name()), append(short, c.Short)
	}
	if want := []string{"wind=west height=10", "wind=west height=20", "wind=east height=10",
		"wind=east height=30"}; !slices.Equal(names, want) {
		t.Errorf("expected cells %v, got %v", want, names)
	}
	if want := []bool{true, true, false, false}; !slices.Equal(short, want) {
		t.Errorf("expected short cells %v, got %v", want, short)
	}
	if frames, ok := e.Cells()[0].Parameters.Value("frames"); !ok || frames != "100" {
		t.Errorf("expected the parameters of all cells in each, got frames %q", frames)
	}
}

func TestWithoutMatrixThereIsOneCell(t *testing.T) {
	e := experimenttest.Parse(t, experimenttest.Run,
		"{name: a, title: b, scenario: test/waves, parameters: {height: 3}}")
	if cells := e.Cells(); len(cells) != 1 || !cells[0].Short || cells[0].Name() != "only" {
		t.Errorf("expected one short cell named only, got %+v", cells)
	}
	if e.Iterations != 10 || e.Seconds != 60 || e.Short != (experiment.Extent{Iterations: 1, Seconds: 10}) {
		t.Errorf("expected 10 iterations of 60 s, short 1 of 10 s, got %d of %g s, short %+v", e.Iterations, e.Seconds,
			e.Short)
	}
}

func TestFileErrors(t *testing.T) {
	const begin = "name: a\ntitle: b\nscenario: test/waves\n"
	tests := []struct{ name, text, want string }{
		{"empty", "", "empty"},
		{"not YAML", "{", "yaml"},
		{"two documents", begin + "---\nname: b", "one document"},
		{"unknown key", begin + "colour: red", "colour"},
		{"name", "name: A b\ntitle: b\nscenario: test/waves", "lower-case"},
		{"no title", "name: a\nscenario: test/waves", "title"},
		{"unknown scenario", "name: a\ntitle: b\nscenario: test/storm", `unknown name "test/storm"`},
		{"iterations", begin + "iterations: -1", "iterations"},
		{"seconds", begin + "seconds: .inf", "seconds"},
		{"short seconds", begin + "short: {iterations: 1, seconds: -2}", "seconds"},
		{"unknown parameter", begin + "parameters: {hight: 3}", "hight"},
		{"parameter of another type", begin + "parameters: {height: tall}", "height"},
		{"parameter that the scenario rejects", begin + "matrix: [{height: [1, -1]}]", "0 or more"},
		{"parameter that is a list", begin + "parameters: {height: [1]}", "expected a number"},
		{"parameter twice", begin + "parameters: {height: 1}\nmatrix: [{height: [1, 2]}]",
			"among the parameters of all cells"},
		{"axis without values", begin + "matrix: [{height: []}]", "at least one value"},
		{"blocks that differ", begin + "matrix: [{height: 1}, {wind: west}]", "expected the same"},
		{"cell twice", begin + "matrix: [{height: [1, 1]}]", "occurs twice"},
		{"unknown figure", begin + "figures: [depth]", `no figure "depth"`},
		{"reference without why", begin + "references: [{figure: latency, value: 1}]", "why"},
		{"reference to no cell", begin + "why: w\nreferences: [{cell: {height: 7}, figure: latency, value: 1}]",
			"no cell has height=7"},
		{"comparison of several cells",
			begin + "why: w\nmatrix: [{height: [1, 2]}]\n" +
				"comparisons: [{name: n, figure: latency, of: {}, to: {height: 1}, as: more}]", "matches 2"},
		{"comparison", begin + "why: w\ncomparisons: [{name: n, figure: latency, as: twice}]", "expected ratio"},
		{"reference with two bounds", begin + "why: w\nreferences: [{figure: latency, value: 1, at_most: true, " +
			"at_least: true}]", "not both"},
		{"comparison with a bound and no value", begin + "why: w\nmatrix: [{height: [1, 2]}]\n" +
			"comparisons: [{name: n, figure: latency, of: {height: 2}, to: {height: 1}, as: more, at_least: true}]",
			"paper: expected the value of the bound"},
		{"kind of plot", begin + "plots: [{name: p, title: t, kind: pie, figures: [latency]}]", "kind"},
		{"plot of no figure", begin + "plots: [{name: p, title: t, kind: bars, x: [height]}]", "figures"},
		{"plot over an unknown parameter",
			begin + "matrix: [{height: [1]}]\n" +
				"plots: [{name: p, title: t, kind: bars, x: [depth], figures: [latency]}]",
			"depth"},
		{"lines over a text parameter",
			begin + "matrix: [{wind: [west]}]\n" +
				"plots: [{name: p, title: t, kind: lines, x: [wind], x_label: l, figures: [latency]}]",
			"expected a number"},
		{"stacked units",
			begin + "matrix: [{height: [1]}]\n" +
				"plots: [{name: p, title: t, kind: stacked, x: [height], figures: [latency, rate]}]", "same unit"},
		{"limit of another figure",
			begin + "matrix: [{height: [1]}]\n" +
				"plots: [{name: p, title: t, kind: bars, x: [height], figures: [latency], " +
				"limits: [{value: 1, figure: rate}]}]",
			"rate"},
	}
	l, err := experimenttest.Library(experimenttest.Run, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := l.Parse([]byte(test.text))
			if !errors.Is(err, experiment.ErrFile) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("expected an error of the file with %q, got %v", test.want, err)
			}
		})
	}
}

func TestLibraryErrors(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"name differs from file": {"other.yaml": experimenttest.File},
		"broken":                 {"waves.yaml": "name: waves"},
	} {
		if _, err := experimenttest.Library(experimenttest.Run, files); !errors.Is(err, experiment.ErrFile) {
			t.Errorf("%s: expected an error of the file, got %v", name, err)
		}
	}
	l, err := experimenttest.Library(experimenttest.Run, map[string]string{"waves.yaml": experimenttest.File})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Find("ripples"); !errors.Is(err, experiment.ErrName) || !strings.Contains(err.Error(), "waves") {
		t.Errorf("expected an error with the known names, got %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(experimenttest.File))
	f.Add([]byte("name: a\ntitle: b\nscenario: test/waves\nmatrix: [{a: [1, 2], b: [1, x], short: true}]"))
	f.Add([]byte("&a [*a]"))
	f.Add([]byte("name: a\nmatrix:\n  - {? [a] : 1}"))
	l, err := experimenttest.Library(experimenttest.Run, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := l.Parse(text)
		if err != nil {
			if !errors.Is(err, experiment.ErrFile) {
				t.Errorf("expected an error of the file, got %v", err)
			}
			return
		}
		if n := len(e.Cells()); n == 0 || n > 10_000 {
			t.Errorf("expected 1 to 10,000 cells, got %d", n)
		}
	})
}
