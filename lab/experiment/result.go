package experiment

import (
	"cmp"
	"encoding/json"
	"io"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/environment"
	"github.com/volsfu/volsfu/lab/hosts"
	"github.com/volsfu/volsfu/lab/inference"
)

// Result is the result of an experiment.
type Result struct {
	Name     string `json:"experiment"`
	Title    string `json:"title"`
	Paper    string `json:"paper,omitempty"`
	Where    string `json:"where,omitempty"`
	About    string `json:"about,omitempty"`
	Scenario string `json:"scenario"`
	Why      string `json:"why,omitempty"`
	// Version is volsfu's.
	Version string      `json:"version"`
	Machine lab.Machine `json:"machine"`
	// Environment describes the machine and the programs, nil if it was not read.
	Environment *environment.Environment `json:"environment,omitempty"`
	// Hosts describes the machines of the roles and their clocks, nil if this machine ran all of them.
	Hosts *hosts.Descriptions `json:"hosts,omitempty"`
	Begun time.Time           `json:"begun"`
	// Seconds is the time of the whole run; IterationSeconds is the measured time of each iteration.
	Seconds          float64 `json:"seconds"`
	IterationSeconds float64 `json:"iteration_seconds"`
	Iterations       int     `json:"iterations"`
	Short            bool    `json:"short"`
	Seed             uint64  `json:"seed"`
	// Data is the folder of the test data; empty if the synthetic figure was used.
	Data string `json:"data,omitempty"`
	// Source is the source of clouds in place of the scenario's, empty for the scenario's.
	Source string `json:"source,omitempty"`
	// Interrupted is set if the run ended before all iterations had begun. The result does not contain the missing
	// iterations.
	Interrupted bool               `json:"interrupted,omitempty"`
	Parameters  Parameters         `json:"parameters"`
	Quantities  []Quantity         `json:"quantities"`
	Cells       []CellResult       `json:"cells"`
	Comparisons []ComparisonResult `json:"comparisons,omitempty"`
	// Notes are the notes of all iterations, each once.
	Notes []string `json:"notes,omitempty"`

	// Experiment is the experiment that has run.
	Experiment *Experiment `json:"-"`
}

// CellResult is the result of a cell.
type CellResult struct {
	Name       string            `json:"cell"`
	Parameters Parameters        `json:"parameters"`
	Iterations []IterationResult `json:"iterations"`
	// Worth is the validity of the iterations on which Figures are based.
	Worth   Validity  `json:"worth"`
	Figures []Summary `json:"figures"`

	Cell Cell `json:"-"`
}

// IterationResult is one iteration.
type IterationResult struct {
	Iteration int    `json:"iteration"`
	Seed      uint64 `json:"seed"`
	// LoadBefore is the system's load average over the last minute at the beginning, -1 if unknown.
	LoadBefore float64 `json:"load_before"`
	// Stolen is the share of the processors' time that a hypervisor gave to other machines, 0 to 1.
	Stolen float64 `json:"stolen"`
	// Seconds is the duration of the iteration, including the time before and after measuring.
	Seconds float64 `json:"seconds"`
	*Outcome
}

// Summary summarises one quantity over the iterations of a cell.
type Summary struct {
	Quantity
	Statistics
	// Paper is the paper's figure, nil if the paper has none.
	Paper *PaperFigure `json:"paper,omitempty"`
}

// PaperFigure is a figure that the paper has printed.
type PaperFigure struct {
	Value float64 `json:"value"`
	Bound
	PlusMinus float64 `json:"plus_minus,omitempty"`
	Deviation float64 `json:"deviation,omitempty"`
	Why       string  `json:"why"`
}

// ComparisonResult is a relation between the figures of two cells.
type ComparisonResult struct {
	Name   string `json:"name"`
	Figure string `json:"figure"`
	Of     string `json:"of"`
	To     string `json:"to"`
	As     string `json:"as"`
	Unit   string `json:"unit"`
	// Value is nil if one of the cells has no figure. Count is the smaller number of iterations of the two cells.
	Value *float64 `json:"value"`
	Count int      `json:"count"`
	// Worth is the worse validity of the two cells, empty if a cell did not run.
	Worth    Validity            `json:"worth,omitempty"`
	Interval *inference.Interval `json:"interval,omitempty"`
	Paper    *float64            `json:"paper,omitempty"`
	Bound
	Why string `json:"why"`
}

// Counts returns the number of iterations of each validity.
func (r *Result) Counts() map[Validity]int {
	counts := make(map[Validity]int)
	for i := range r.Cells {
		for _, iteration := range r.Cells[i].Iterations {
			counts[iteration.Validity]++
		}
	}
	return counts
}

// MarshalJSON implements json.Marshaler: an object in the order of the file.
func (ps Parameters) MarshalJSON() ([]byte, error) {
	text := []byte{'{'}
	for i, p := range ps {
		if i > 0 {
			text = append(text, ',')
		}
		name, err := json.Marshal(p.Name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(p.Value)
		if err != nil {
			return nil, err
		}
		text = append(append(append(text, name...), ':'), value...)
	}
	return append(text, '}'), nil
}

// WriteJSON writes the result as one JSON object.
func (r *Result) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(r)
}

// Figure returns a summary of a cell by its name, nil if the cell has no such figure.
func (c *CellResult) Figure(name string) *Summary {
	for i := range c.Figures {
		if c.Figures[i].Name == name {
			return &c.Figures[i]
		}
	}
	return nil
}

// Usable returns the iterations on which the figures are based.
func (c *CellResult) Usable() []IterationResult {
	var all []IterationResult
	for _, i := range c.Iterations {
		if i.Validity == c.Worth {
			all = append(all, i)
		}
	}
	return all
}

// summarise computes the figures of a cell from its valid iterations. Without valid iterations, the cpu-bound
// iterations count; without those, the invalid iterations. Worth records the choice.
func (c *CellResult) summarise(e *Experiment) {
	c.Figures = []Summary{}
	for _, c.Worth = range validities {
		if len(c.Usable()) > 0 {
			break
		}
	}
	for _, q := range e.scenario.Quantities() {
		figures := c.FiguresOf(q.Name)
		if len(figures) == 0 {
			continue
		}
		c.Figures = append(c.Figures, Summary{Quantity: q, Statistics: Summarise(figures),
			Paper: e.PaperFigure(c.Parameters, q.Name)})
	}
}

// derive sets the figures that are quantiles of samples.
func (c *CellResult) derive(e *Experiment) {
	for _, q := range e.scenario.Quantities() {
		if q.Of == "" {
			continue
		}
		for _, iteration := range c.Iterations {
			for _, f := range iteration.Figures {
				if f.Name == q.Of && f.Samples != nil {
					iteration.Set(q.Name, Quantile(f.Samples, q.Share))
				}
			}
		}
	}
}

// FiguresOf returns a quantity of the usable iterations.
func (c *CellResult) FiguresOf(name string) []Figure {
	var figures []Figure
	for _, i := range c.Usable() {
		for _, f := range i.Figures {
			if f.Name == name {
				figures = append(figures, f)
			}
		}
	}
	return figures
}

// PaperFigure returns the paper's figure of a cell, nil if the paper has none. If several references match, the last
// one counts.
func (e *Experiment) PaperFigure(cell Parameters, name string) *PaperFigure {
	var found *PaperFigure
	for _, r := range e.References {
		if r.Figure == name && cell.Match(r.Cell) {
			found = &PaperFigure{r.Value, r.Bound, r.PlusMinus, r.Deviation, cmp.Or(r.Why, e.Why)}
		}
	}
	return found
}

// compare computes the comparisons. The interval follows from the iterations of both cells; a single iteration
// contributes its parts.
func (r *Result) compare() {
	for _, c := range r.Experiment.Comparisons {
		of, to := r.one(c.Of), r.one(c.To)
		result := ComparisonResult{
			Name: c.Name, Figure: c.Figure, Of: c.Of.String(), To: c.To.String(), As: c.As, Unit: c.unit(),
			Paper: c.Paper, Bound: c.Bound, Why: cmp.Or(c.Why, r.Experiment.Why),
		}
		if of != nil && to != nil {
			result.Worth = Worse(of.Worth, to.Worth)
		}
		if of != nil && to != nil && of.Figure(c.Figure) != nil && to.Figure(c.Figure) != nil &&
			to.Figure(c.Figure).Mean != 0 {
			value := c.relate(of.Figure(c.Figure).Mean, to.Figure(c.Figure).Mean)
			result.Value = &value
			result.Count = min(of.Figure(c.Figure).Count, to.Figure(c.Figure).Count)
			result.Interval = c.interval(parts(of.FiguresOf(c.Figure)), parts(to.FiguresOf(c.Figure)))
		}
		r.Comparisons = append(r.Comparisons, result)
	}
}

// one returns the cell with the given parameters, nil if the cell did not run.
func (r *Result) one(some Parameters) *CellResult {
	for i := range r.Cells {
		if r.Cells[i].Parameters.Match(some) {
			return &r.Cells[i]
		}
	}
	return nil
}

// parts returns independent values of a quantity: the values of the iterations, or the values of the parts of the only
// iteration.
func parts(figures []Figure) []float64 {
	if len(figures) == 1 {
		return BatchMeans(figures[0].Samples, batches)
	}
	values := make([]float64, len(figures))
	for i, f := range figures {
		values[i] = f.Value
	}
	return values
}

// PlotNames returns the names of the report's plots that show at least one of the selected cells, in order.
func (r *Result) PlotNames() []string {
	var names []string
	for i := range r.Experiment.Plots {
		if p := &r.Experiment.Plots[i]; r.one(p.Where) != nil {
			names = append(names, p.Name)
		}
	}
	return names
}
