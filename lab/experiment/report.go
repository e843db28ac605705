package experiment

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"os"
	"path/filepath"

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

var page = template.Must(template.New("report").Funcs(template.FuncMap{"number": number}).Parse(pageText))

// WriteReport writes all files of the report to a folder: the page with its plots, each plot, JSON and CSV. A file that
// cannot be written does not prevent the others; the error names all failed files.
func (r *Result) WriteReport(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	drawings, failed := r.draw(folder)
	files := []struct {
		name  string
		write func(io.Writer) error
	}{
		{ResultFile, r.WriteJSON},
		{FiguresFile, r.WriteFigures},
		{IterationsFile, r.WriteIterations},
		{PageFile, func(w io.Writer) error { return page.Execute(w, r.view(drawings)) }},
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

// drawing is a plot on the page. SVG is empty if there was nothing to draw.
type drawing struct {
	Name, Title string
	SVG         template.HTML
}

// draw writes every plot to a file and returns the plots for the page. A plot that cannot be drawn is left out.
func (r *Result) draw(folder string) (drawings []drawing, failed error) {
	for i := range r.experiment.Plots {
		p := &r.experiment.Plots[i]
		var b bytes.Buffer
		err := r.Draw(p, &b)
		if errors.Is(err, plot.ErrEmpty) {
			drawings = append(drawings, drawing{Name: p.Name, Title: p.Title})
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
		drawings = append(drawings, drawing{p.Name, p.Title, template.HTML(b.String())})
	}
	return drawings, failed
}

// view is the content of the page.
type view struct {
	*Result
	Summary  string
	Varied   []string
	Columns  []Quantity
	Rows     []viewRow
	Papers   []paperRow
	Spreads  []iterationRow
	Drawings []drawing
	Methods  []string
	LoadLow  float64
	LoadHigh float64
}

// viewRow is a cell in the table of figures.
type viewRow struct {
	Texts   []string
	Worth   Validity
	Figures []string
}

// paperRow is a figure beside the paper's.
type paperRow struct {
	Cell, Figure, Unit string
	Ours, Paper        string
	Ratio              string
	Worth              Validity
	// Why explains this figure's difference if the common explanation does not apply.
	Why string
}

func (r *Result) view(drawings []drawing) *view {
	v := &view{Result: r, Summary: r.summary(), Varied: r.varied(), Drawings: drawings}
	for _, name := range r.figures() {
		if q, ok := r.experiment.Quantity(name); ok && r.measured(name) {
			v.Columns = append(v.Columns, q)
		}
	}
	for i := range r.Cells {
		c := &r.Cells[i]
		row := viewRow{Texts: c.texts(v.Varied), Worth: c.Worth}
		for _, q := range v.Columns {
			text := "–"
			if s := c.Figure(q.Name); s != nil {
				text = s.spread()
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

// measured reports whether any cell has a figure.
func (r *Result) measured(name string) bool {
	for i := range r.Cells {
		if r.Cells[i].Figure(name) != nil {
			return true
		}
	}
	return false
}

func (v *view) papers(c *CellResult) {
	for _, s := range c.Figures {
		if s.Paper == nil {
			continue
		}
		row := paperRow{Cell: c.Name, Figure: s.Label, Unit: s.Unit, Ours: s.spread(), Paper: s.Paper.spread(),
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

// Ours and Papers format a comparison for the page.
func (c ComparisonResult) Ours() string   { return c.ours() }
func (c ComparisonResult) Papers() string { return c.papers() }
