package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/volsfu/volsfu/lab/experiment"
)

// Number formats a figure with four digits, and at most three after the point.
func Number(v float64) string {
	switch a := math.Abs(v); {
	case a >= 1000:
		return strconv.FormatFloat(math.Round(v), 'f', 0, 64)
	case a >= 100:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'f', 3, 64)
}

// measured formats a mean with half its interval and the number of iterations.
func measured(s *experiment.Summary) string {
	text := Number(s.Mean)
	if s.Interval != nil {
		text += " ± " + Number((s.Interval.High-s.Interval.Low)/2)
	}
	return fmt.Sprintf("%s (n = %d)", text, s.Count)
}

// printed formats a paper's figure in the style of papers.
func printed(f *experiment.PaperFigure) string {
	text := f.Sign() + Number(f.Value)
	if f.PlusMinus != 0 {
		text += " ± " + Number(f.PlusMinus)
	}
	if f.Deviation != 0 {
		text += ", deviation " + Number(f.Deviation)
	}
	return text
}

// varied returns the names of the parameters in which cells differ.
func varied(r *experiment.Result) []string {
	if len(r.Cells) == 0 {
		return nil
	}
	var names []string
	for _, p := range r.Cells[0].Cell.Varied() {
		names = append(names, p.Name)
	}
	return names
}

// texts returns a cell's values of parameters.
func texts(c *experiment.CellResult, names []string) []string {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i], _ = c.Parameters.Value(name)
	}
	return texts
}

// WriteFigures writes a table in CSV: a row per cell and figure, with its statistics and the paper's figure.
func WriteFigures(r *experiment.Result, w io.Writer) error {
	table := csv.NewWriter(w)
	names := varied(r)
	_ = table.Write(append(append([]string{"experiment"}, names...),
		"figure", "unit", "worth", "iterations", "mean", "low", "high", "interval", "median", "deviation", "min", "max",
		"paper", "paper_plus_minus", "paper_deviation"))
	for i := range r.Cells {
		c := &r.Cells[i]
		for _, s := range c.Figures {
			row := append(append([]string{r.Name}, texts(c, names)...), s.Name, s.Unit, string(c.Worth),
				strconv.Itoa(s.Count), exact(s.Mean))
			if s.Interval != nil {
				row = append(row, exact(s.Interval.Low), exact(s.Interval.High), s.Interval.Method)
			} else {
				row = append(row, "", "", "")
			}
			row = append(row, exact(s.Median), exact(s.Deviation), exact(s.Min), exact(s.Max))
			if s.Paper != nil {
				row = append(row, exact(s.Paper.Value), exact(s.Paper.PlusMinus), exact(s.Paper.Deviation))
			} else {
				row = append(row, "", "", "")
			}
			_ = table.Write(row)
		}
	}
	table.Flush()
	return table.Error()
}

// WriteIterations writes a table in CSV: a row per iteration and figure, and a row without figure for an iteration that
// has none. No iteration is left out.
func WriteIterations(r *experiment.Result, w io.Writer) error {
	table := csv.NewWriter(w)
	names := varied(r)
	_ = table.Write(append(append([]string{"experiment"}, names...), "iteration", "seed", "load_before", "seconds",
		"validity", "reason", "figure", "unit", "value"))
	for i := range r.Cells {
		c := &r.Cells[i]
		for _, iteration := range c.Iterations {
			row := append(append([]string{r.Name}, texts(c, names)...), strconv.Itoa(iteration.Iteration),
				strconv.FormatUint(iteration.Seed, 10),
				exact(iteration.LoadBefore), fmt.Sprintf("%.1f", iteration.Seconds), string(iteration.Validity),
				iteration.Remark())
			if len(iteration.Figures) == 0 {
				_ = table.Write(append(row, "", "", ""))
			}
			for _, f := range iteration.Figures {
				q, _ := r.Experiment.Quantity(f.Name)
				_ = table.Write(append(row[:len(row):len(row)], f.Name, q.Unit, exact(f.Value)))
			}
		}
	}
	table.Flush()
	return table.Error()
}

// exact formats a number so that parsing restores the same value.
func exact(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// WriteText writes the figures for a terminal: a row per cell, a line per figure of the tables, every iteration with a
// remark, relations and notes.
func WriteText(r *experiment.Result, w io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %s\n%s\n", r.Name, r.Title, summary(r))
	for i := range r.Cells {
		c := &r.Cells[i]
		fmt.Fprintf(&text, "\n  %s%s\n", c.Name, remark(c.Worth))
		for _, name := range figures(r) {
			s := c.Figure(name)
			if s == nil {
				continue
			}
			text.WriteString(strings.TrimRight(fmt.Sprintf("    %-44s %s %s", s.Label, measured(s), s.Unit), " "))
			if s.Paper != nil {
				fmt.Fprintf(&text, " (paper: %s)", printed(s.Paper))
			}
			text.WriteByte('\n')
		}
		for _, iteration := range c.Iterations {
			if remark := iteration.Remark(); remark != "" {
				fmt.Fprintf(&text, "    iteration %d is %s: %s\n", iteration.Iteration, iteration.Validity, remark)
			}
		}
	}
	for _, c := range r.Comparisons {
		fmt.Fprintf(&text, "\n  %s: %s%s", c.Name, ours(c), papers(c))
	}
	if len(r.Comparisons) > 0 {
		text.WriteByte('\n')
	}
	for _, note := range r.Notes {
		fmt.Fprintf(&text, "\n  note: %s", note)
	}
	if len(r.Notes) > 0 {
		text.WriteByte('\n')
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// figures returns the names of the quantities of tables.
func figures(r *experiment.Result) []string {
	if len(r.Experiment.Figures) > 0 {
		return r.Experiment.Figures
	}
	names := make([]string, len(r.Quantities))
	for i, q := range r.Quantities {
		names[i] = q.Name
	}
	return names
}

// remark returns the validity in brackets, empty if valid.
func remark(v experiment.Validity) string {
	if v == experiment.Valid {
		return ""
	}
	return " (" + string(v) + ")"
}

// ours formats a comparison's value with its interval and validity. papers formats the paper's value, if the paper has
// one.
func ours(c experiment.ComparisonResult) string {
	switch {
	case c.Value == nil:
		return "not measured"
	case c.Interval == nil:
		return Number(*c.Value) + " " + c.Unit + remark(c.Worth)
	}
	return fmt.Sprintf("%s %s (%s to %s)%s", Number(*c.Value), c.Unit, Number(c.Interval.Low), Number(c.Interval.High),
		remark(c.Worth))
}

func papers(c experiment.ComparisonResult) string {
	if c.Paper == nil {
		return ""
	}
	return fmt.Sprintf(" (paper: %s%s %s)", c.Sign(), Number(*c.Paper), c.Unit)
}

// summary returns the number of iterations of each validity, in words.
func summary(r *experiment.Result) string {
	counts := r.Counts()
	var parts []string
	for _, v := range columns {
		if counts[v] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[v], v))
		}
	}
	if len(parts) == 0 {
		parts = []string{"none"}
	}
	text := fmt.Sprintf("iterations: %s; %d × %g s per cell, %d cells, %.0f s in all", strings.Join(parts, ", "),
		r.Iterations, r.IterationSeconds, len(r.Cells), r.Seconds)
	if r.Interrupted {
		text += "; interrupted"
	}
	return text
}
