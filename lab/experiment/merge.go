package experiment

import "slices"

// Merge returns the results of several runs of an experiment as one result, with the cells of all runs in the order of
// the experiment's file. Of a cell in several runs, the run that began last counts. A relation may then be of cells in
// different runs. The other fields are those of the run that began last.
func Merge(runs ...*Result) *Result {
	runs = slices.SortedStableFunc(slices.Values(runs), func(a, b *Result) int { return a.Begun.Compare(b.Begun) })
	merged := *runs[len(runs)-1]
	merged.Cells, merged.Notes, merged.Comparisons = nil, nil, nil
	for _, c := range merged.Experiment.cells {
		for _, r := range slices.Backward(runs) {
			if done := r.cell(c.Name()); done != nil && len(done.Iterations) > 0 {
				merged.Cells = append(merged.Cells, *done)
				break
			}
		}
	}
	merged.complete()
	return &merged
}

// cell returns a cell by its name, nil if the run does not have the cell.
func (r *Result) cell(name string) *CellResult {
	if i := slices.IndexFunc(r.Cells, func(c CellResult) bool { return c.Name == name }); i >= 0 {
		return &r.Cells[i]
	}
	return nil
}

// Finished reports whether the run has all iterations of a cell, and the figures of the cell are those of valid or
// cpu-bound iterations.
func (r *Result) Finished(name string) bool {
	c := r.cell(name)
	return c != nil && len(c.Iterations) >= r.Iterations && (c.Worth == Valid || c.Worth == CPUBound)
}
