package reproduction

import (
	"math"
	"slices"

	"github.com/volsfu/volsfu/lab/experiment"
)

// Status is the result of a comparison with a paper.
type Status string

// The statuses.
const (
	// Reproduced: our mean is within 25 % of the paper's value, or the intervals of the paper and of our mean overlap;
	// and half of our interval is at most 25 % of our mean. A bound is reproduced if our interval is on its side.
	Reproduced Status = "reproduced"
	// Deviates: the result is another one. Reason explains the difference.
	Deviates Status = "deviates"
	// Inconclusive: the result agrees with the paper, but its interval is too wide to decide; or only some iterations
	// have the value.
	Inconclusive Status = "inconclusive"
	// NotRun: there is no valid result.
	NotRun Status = "not run"
)

// tolerance is the share of the paper's value by which a reproduced mean may differ. The papers measured on other
// machines with other content: a smaller difference says nothing about the systems.
const tolerance = 0.25

// Row compares one value of a paper.
type Row struct {
	Run  string `json:"run"`
	Cell string `json:"cell,omitempty"`
	// Name is the label of the quantity, or the name of the relation.
	Name string `json:"name"`
	Unit string `json:"unit"`
	// Paper is the paper's value or bound, PlusMinus half of its interval.
	Paper     float64 `json:"paper"`
	PlusMinus float64 `json:"plus_minus,omitempty"`
	experiment.Bound
	// Ours is the mean of N iterations, nil without a result. Low and High are its interval of 95 %, equal to Ours
	// without an interval.
	Ours   *float64            `json:"ours,omitempty"`
	Low    float64             `json:"low,omitempty"`
	High   float64             `json:"high,omitempty"`
	N      int                 `json:"n,omitempty"`
	Worth  experiment.Validity `json:"worth,omitempty"`
	Status Status              `json:"status"`
	// Of is the number of iterations of the cell, 0 for a relation. Iterations beyond N do not have the value: an event
	// did not occur.
	Of int `json:"of,omitempty"`
	// Unbounded is set if several iterations have no finite interval of their relation: the divisor may be 0.
	Unbounded bool `json:"unbounded,omitempty"`
	// Reason explains why ours may differ.
	Reason string `json:"reason,omitempty"`

	// figure is the name of the quantity, relation the name of the relation; one is empty.
	figure, relation string
}

// Compared is an item with its rows.
type Compared struct {
	Item
	Status Status `json:"status"`
	Rows   []Row  `json:"rows,omitempty"`
	// Extents are those of the item's cells in the runs.
	Extents []Extent `json:"extents,omitempty"`
	// Pictures are the plots with data.
	Pictures []Picture `json:"pictures,omitempty"`
}

// Extent is the extent of cells of a run.
type Extent struct {
	Run        string  `json:"run"`
	Iterations int     `json:"iterations"`
	Seconds    float64 `json:"seconds"`
	// FullIterations and FullSeconds are the extent in tier full.
	FullIterations int     `json:"full_iterations"`
	FullSeconds    float64 `json:"full_seconds"`
}

// Results are the results of runs, by name of the experiment. The runs of an experiment have different cells.
type Results map[string][]*experiment.Result

// merged returns the cells of all runs of an experiment as one result, nil without a run.
func (r Results) merged(name string) *experiment.Result {
	switch runs := r[name]; len(runs) {
	case 0:
		return nil
	case 1:
		return runs[0]
	default:
		return experiment.Merge(runs...)
	}
}

// Compare compares an item with the results of runs. Experiments without a result are not run. An item is reproduced if
// all of its values are, and deviates if one deviates and the others have a result.
func Compare(item Item, l *experiment.Library, results Results) (Compared, error) {
	c := Compared{Item: item}
	merged := make(map[string]*experiment.Result)
	for _, name := range item.Runs() {
		run, err := l.Find(name)
		if err != nil {
			return c, err
		}
		merged[name] = results.merged(name)
		c.Extents = append(c.Extents, extents(item.cells(run), run, results[name])...)
	}
	if err := c.draw(merged); err != nil {
		return c, err
	}
	for _, e := range item.Evidence {
		run, err := l.Find(e.Run)
		if err != nil {
			return c, err
		}
		for _, row := range e.rows(run) {
			row.compare(merged[e.Run])
			c.Rows = append(c.Rows, row)
		}
	}
	c.Status = c.status()
	return c, nil
}

// extents returns the extents of some cells in the runs of an experiment, each once.
func extents(cells []experiment.Cell, e *experiment.Experiment, runs []*experiment.Result) (list []Extent) {
	for _, r := range runs {
		extent := Extent{e.Name, r.Iterations, r.IterationSeconds, e.Iterations, e.Seconds}
		has := slices.ContainsFunc(r.Cells, func(c experiment.CellResult) bool {
			return slices.ContainsFunc(cells, func(cell experiment.Cell) bool { return cell.Name() == c.Name })
		})
		if has && !slices.Contains(list, extent) {
			list = append(list, extent)
		}
	}
	return list
}

// status returns the status of an item, which follows from its rows.
func (c *Compared) status() Status {
	status := Reproduced
	for i := range c.Rows {
		switch row := c.Rows[i].Status; {
		case row == NotRun:
			return NotRun
		case row == Deviates, row == Inconclusive && status == Reproduced:
			status = row
		}
	}
	return status
}

// compare adds our value.
func (r *Row) compare(result *experiment.Result) {
	switch {
	case result == nil:
	case r.relation != "":
		r.ofRelation(result)
	default:
		r.ofCell(result)
	}
	r.judge()
}

// judge determines the status from our value.
func (r *Row) judge() {
	r.Status = NotRun
	switch {
	case r.Worth != experiment.Valid && r.Worth != experiment.CPUBound:
	case r.Ours != nil:
		r.Status = r.verdict()
	case r.Of > 0:
		r.Status = Deviates
	}
}

func (r *Row) ofCell(result *experiment.Result) {
	for i := range result.Cells {
		c := &result.Cells[i]
		if c.Name != r.Cell {
			continue
		}
		r.Worth, r.Of = c.Worth, len(c.Usable())
		if s := c.Figure(r.figure); s != nil {
			r.Ours, r.Low, r.High, r.N = &s.Mean, s.Mean, s.Mean, s.Count
			if s.Interval != nil {
				r.Low, r.High = s.Interval.Low, s.Interval.High
			}
		}
	}
}

func (r *Row) ofRelation(result *experiment.Result) {
	for _, c := range result.Comparisons {
		if c.Name != r.relation {
			continue
		}
		r.Unit, r.Reason = c.Unit, c.Why
		if c.Value == nil {
			return
		}
		r.Ours, r.Low, r.High, r.N, r.Worth = c.Value, *c.Value, *c.Value, c.Count, c.Worth
		r.Unbounded = c.Interval == nil && c.Count > 1
		if c.Interval != nil {
			r.Low, r.High = c.Interval.Low, c.Interval.High
		}
	}
}

// verdict compares our value with the paper's.
func (r *Row) verdict() Status {
	agrees := math.Abs(*r.Ours-r.Paper) <= tolerance*r.size(r.Paper) ||
		r.Low <= r.Paper+r.PlusMinus && r.High >= r.Paper-r.PlusMinus
	wide := (r.High-r.Low)/2 > tolerance*r.size(*r.Ours)
	switch {
	case r.AtMost:
		agrees, wide = r.Low <= r.Paper, r.High > r.Paper
	case r.AtLeast:
		agrees, wide = r.High >= r.Paper, r.Low < r.Paper
	}
	switch {
	case r.Unbounded:
		return Inconclusive
	case !agrees:
		return Deviates
	case wide, r.N < r.Of:
		return Inconclusive
	}
	return Reproduced
}

// size returns the size of a value of which the tolerance is a share. The size of a share in per cent is the distance
// from the nearer of 0 and 100: a reliability of 96 % has twice the losses of 98 %.
func (r *Row) size(value float64) float64 {
	if r.Unit == "%" && r.relation == "" {
		return min(math.Abs(value), math.Abs(100-value))
	}
	return math.Abs(value)
}
