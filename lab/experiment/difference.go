package experiment

import (
	"errors"
	"fmt"

	"github.com/volsfu/volsfu/lab/inference"
)

// ErrOtherExperiment reports a comparison of runs of different experiments.
var ErrOtherExperiment = errors.New("the runs are of different experiments")

// Difference compares a figure of a cell in two runs.
type Difference struct {
	Cell     string   `json:"cell"`
	Quantity Quantity `json:"quantity"`
	// A and B are the figure in the two runs.
	A Statistics `json:"a"`
	B Statistics `json:"b"`
	// Ratio is the interval of A / B, nil if there is none.
	Ratio *inference.Interval `json:"ratio,omitempty"`
	// P is the probability of a difference as observed or larger if the two means are equal, corrected for the number
	// of compared figures (inference.Holm).
	P float64 `json:"p"`
}

// Significant reports whether the two figures differ at the level of 5 %.
func (d *Difference) Significant() bool { return d.P < 1-inference.Confidence }

// Differences compares all figures that both runs of an experiment have, in the order of a. Runs of different lengths
// or machines may be compared: the result then shows the effect of that.
func Differences(a, b *Result) ([]Difference, error) {
	if a.Name != b.Name {
		return nil, fmt.Errorf("%w: %s and %s", ErrOtherExperiment, a.Name, b.Name)
	}
	var differences []Difference
	var p []float64
	for i := range a.Cells {
		of := &a.Cells[i]
		to := b.named(of.Name)
		if to == nil {
			continue
		}
		for _, s := range of.Figures {
			other := to.Figure(s.Name)
			if other == nil {
				continue
			}
			x, y := parts(of.FiguresOf(s.Name)), parts(to.FiguresOf(s.Name))
			differences = append(differences, Difference{Cell: of.Name, Quantity: s.Quantity, A: s.Statistics,
				B: other.Statistics, Ratio: inference.Ratio(x, y)})
			p = append(p, inference.Differ(x, y))
		}
	}
	for i, corrected := range inference.Holm(p) {
		differences[i].P = corrected
	}
	return differences, nil
}

// named returns the cell of a name, nil if the run has none.
func (r *Result) named(name string) *CellResult {
	for i := range r.Cells {
		if r.Cells[i].Name == name {
			return &r.Cells[i]
		}
	}
	return nil
}
