package claims

import (
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/test/claim"
)

// figure is one of a cell, with what is to be known of it.
type figure struct {
	value  float64
	unit   string
	there  bool
	remark string
	// failed says how an iteration of the cell failed, empty if none did. Whatever the other iterations measured, a
	// transport that failed has missed its targets.
	failed string
}

// notMeasured is what is known of a figure that is not there.
const notMeasured = "not measured"

// figureOf finds a cell's figure. A cell has none if the measuring of all its iterations was disturbed, or if one of
// them failed.
func figureOf(r *experiment.Result, name string, cell experiment.Parameter) figure {
	for i := range r.Cells {
		c := &r.Cells[i]
		if !c.Parameters.Match(experiment.Parameters{cell}) {
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

// failureOf says how an iteration of a cell failed, empty if none did.
func failureOf(c *experiment.CellResult) string {
	for _, iteration := range c.Iterations {
		if iteration.Validity == experiment.Failed {
			return iteration.Reason
		}
	}
	return ""
}

// named is a line's name with what is to be known of its figure.
func (f figure) named(name string) string {
	if f.remark == "" {
		return name
	}
	return name + " (" + f.remark + ")"
}

// absent is the line of a figure that is not there.
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

// both makes a line of two figures, or says why there is none.
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
