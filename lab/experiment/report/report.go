package report

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"os"
	"path/filepath"

	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/plot"
)

// The names of a report's files.
const (
	PageFile       = "report.html"
	ResultFile     = "result.json"
	FiguresFile    = "figures.csv"
	IterationsFile = "iterations.csv"
)

//go:embed report.gohtml
var pageText string

var page = template.Must(template.New("report").Funcs(template.FuncMap{"number": number, "ours": ours}).Parse(pageText))

// Write writes all files of a report to a folder: the page with its plots, each plot, JSON and CSV. A file that
// cannot be written does not prevent the others; the error names all failed files.
func Write(r *experiment.Result, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	plots, failed := drawAll(r, folder)
	files := []struct {
		name  string
		write func(io.Writer) error
	}{
		{ResultFile, r.WriteJSON},
		{FiguresFile, func(w io.Writer) error { return WriteFigures(r, w) }},
		{IterationsFile, func(w io.Writer) error { return WriteIterations(r, w) }},
		{PageFile, func(w io.Writer) error { return page.Execute(w, newView(r, plots)) }},
	}
	for _, f := range files {
		if err := writeFile(filepath.Join(folder, f.name), f.write); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %s: %w", r.Name, f.name, err))
		}
	}
	return failed
}

func writeFile(name string, write func(io.Writer) error) error {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	return os.WriteFile(name, b.Bytes(), 0o644)
}

// pagePlot is a plot on the page. SVG is empty if there was nothing to draw.
type pagePlot struct {
	Name, Title string
	SVG         template.HTML
}

// drawAll writes every plot to a file and returns the plots for the page. A plot that cannot be drawn is left out.
func drawAll(r *experiment.Result, folder string) (plots []pagePlot, failed error) {
	for i := range r.Experiment.Plots {
		p := &r.Experiment.Plots[i]
		var b bytes.Buffer
		err := Draw(r, p, &b)
		if errors.Is(err, plot.ErrEmpty) {
			plots = append(plots, pagePlot{Name: p.Name, Title: p.Title})
			continue
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: plot %s: %w", r.Name, p.Name, err))
			continue
		}
		if err := os.WriteFile(filepath.Join(folder, p.Name+".svg"), b.Bytes(), 0o644); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: plot %s: %w", r.Name, p.Name, err))
		}
		// This package generates the SVG; texts from files are escaped in it.
		plots = append(plots, pagePlot{p.Name, p.Title, template.HTML(b.String())})
	}
	return plots, failed
}

// view is the content of the page.
type view struct {
	*experiment.Result
	Summary  string
	Varied   []string
	Columns  []experiment.Quantity
	Rows     []viewRow
	Papers   []paperRow
	Spreads  []iterationRow
	Plots    []pagePlot
	Methods  []string
	LoadLow  float64
	LoadHigh float64
}

// viewRow is a cell in the table of figures.
type viewRow struct {
	Texts   []string
	Worth   experiment.Validity
	Figures []string
}

// paperRow is a figure beside the paper's.
type paperRow struct {
	Cell, Figure, Unit string
	Ours, Paper        string
	Ratio              string
	Worth              experiment.Validity
	// Why explains this figure's difference if the common explanation does not apply.
	Why string
}

func newView(r *experiment.Result, plots []pagePlot) *view {
	v := &view{Result: r, Summary: summary(r), Varied: varied(r), Plots: plots}
	for _, name := range figures(r) {
		if q, ok := r.Experiment.Quantity(name); ok && hasFigure(r, name) {
			v.Columns = append(v.Columns, q)
		}
	}
	for i := range r.Cells {
		c := &r.Cells[i]
		row := viewRow{Texts: texts(c, v.Varied), Worth: c.Worth}
		for _, q := range v.Columns {
			text := "–"
			if s := c.Figure(q.Name); s != nil {
				text = measured(s)
			}
			row.Figures = append(row.Figures, text)
		}
		v.Rows = append(v.Rows, row)
		v.papers(c)
		v.iterations(c)
	}
	v.circumstances()
	return v
}

// hasFigure reports whether any cell has a figure.
func hasFigure(r *experiment.Result, name string) bool {
	for i := range r.Cells {
		if r.Cells[i].Figure(name) != nil {
			return true
		}
	}
	return false
}

func (v *view) papers(c *experiment.CellResult) {
	for _, s := range c.Figures {
		if s.Paper == nil {
			continue
		}
		row := paperRow{Cell: c.Name, Figure: s.Label, Unit: s.Unit, Ours: measured(&s), Paper: printed(s.Paper),
			Worth: c.Worth, Ratio: "–"}
		if s.Paper.Why != v.Why {
			row.Why = s.Paper.Why
		}
		if s.Paper.Value != 0 {
			row.Ratio = number(s.Mean / s.Paper.Value)
		}
		v.Papers = append(v.Papers, row)
	}
}

// circumstances collects the methods of intervals and the range of load averages.
func (v *view) circumstances() {
	first := true
	for i := range v.Cells {
		for _, s := range v.Cells[i].Figures {
			if s.Interval != nil {
				collect(&v.Methods, s.Interval.Method)
			}
		}
		for _, iteration := range v.Cells[i].Iterations {
			if first || iteration.LoadBefore < v.LoadLow {
				v.LoadLow = iteration.LoadBefore
			}
			if first || iteration.LoadBefore > v.LoadHigh {
				v.LoadHigh = iteration.LoadBefore
			}
			first = false
		}
	}
}
