package claims

import (
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/test/claim"
)

// figure is a figure of a cell with its remark.
type figure struct {
	value  float64
	unit   string
	there  bool
	remark string
	// failed is the reason of a failed iteration of the cell, empty if no iteration failed. A transport with a failed
	// iteration misses its targets, independently of the other iterations.
	failed string
}

// notMeasured is the remark of an absent figure.
const notMeasured = "not measured"

// figureOf returns a figure of the first cell with some parameters. The figure is absent if all iterations were
// disturbed, or if an iteration failed.
func figureOf(r *experiment.Result, name string, cell ...experiment.Parameter) figure {
	for i := range r.Cells {
		c := &r.Cells[i]
		if !c.Parameters.Match(cell) {
			continue
		}
		f := figure{remark: notMeasured}
		for _, iteration := range c.Iterations {
			if iteration.Reason != "" {
				f.remark = notMeasured + ": " + iteration.Reason
			}
		}
		f.failed = failureOf(c)
		if s := c.Figure(name); f.failed == "" && s != nil && c.Worth != experiment.Invalid {
			f.value, f.unit, f.there, f.remark = s.Mean, s.Unit, true, ""
			if c.Worth != experiment.Valid {
				f.remark = string(c.Worth)
			}
		}
		return f
	}
	return figure{remark: notMeasured}
}

// failureOf returns the reason of a failed iteration of a cell, empty if none failed.
func failureOf(c *experiment.CellResult) string {
	for _, iteration := range c.Iterations {
		if iteration.Validity == experiment.Failed {
			return iteration.Reason
		}
	}
	return ""
}

// named returns a line's name with the figure's remark.
func (f figure) named(name string) string {
	if f.remark == "" {
		return name
	}
	return name + " (" + f.remark + ")"
}

// absent returns the line of an absent figure.
func (f figure) absent(name string) claim.Line {
	if f.failed != "" {
		return claim.Fail(name, f.failed)
	}
	return claim.Skip(name, f.remark)
}

func (f figure) information(name string) claim.Line {
	if !f.there {
		return f.absent(name)
	}
	return claim.Information(f.named(name), f.value, f.unit)
}

// stated returns the line of a figure that a claim requires without a bound.
func (f figure) stated(name string) claim.Line {
	return f.judged(name, func(f figure, name string) claim.Line { return claim.Stated(name, f.value, f.unit) })
}

// judged returns a line of a figure, or a skipped or failed line if the figure is absent.
func (f figure) judged(name string, line func(f figure, name string) claim.Line) claim.Line {
	if !f.there {
		return f.absent(name)
	}
	return line(f, f.named(name))
}

// both returns a line of two figures, or a skipped or failed line if a figure is absent.
func both(a, b figure, name string, line func(a, b float64, name string) claim.Line) claim.Line {
	switch {
	case a.failed != "" || b.failed == "" && !a.there:
		return a.absent(name)
	case !b.there:
		return b.absent(name)
	case a.remark == "":
		return line(a.value, b.value, b.named(name))
	}
	return line(a.value, b.value, a.named(name))
}
