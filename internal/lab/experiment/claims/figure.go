package claims

import (
	"github.com/volsfu/volsfu/internal/lab"
	"github.com/volsfu/volsfu/internal/lab/experiment"
)

// figure is one of a cell, with what is to be known of it.
type figure struct {
	value  float64
	unit   string
	there  bool
	remark string
}

// notMeasured is what is known of a figure that is not there.
const notMeasured = "not measured"

// figureOf finds a cell's figure. Where the measuring of all its iterations was disturbed it has none: what came out then says nothing of the transports.
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
		if s := c.Figure(name); s != nil && c.Worth != experiment.Invalid {
			f.value, f.unit, f.there, f.remark = s.Mean, s.Unit, true, ""
			if c.Worth != experiment.Valid {
				f.remark = string(c.Worth)
			}
		}
		return f
	}
	return figure{remark: notMeasured}
}

// named is a line's name with what is to be known of its figure.
func (f figure) named(name string) string {
	if f.remark == "" {
		return name
	}
	return name + " (" + f.remark + ")"
}

func (f figure) information(name string) lab.Line {
	if !f.there {
		return lab.Skip(name, f.remark)
	}
	return lab.Information(f.named(name), f.value, f.unit)
}

// both makes a line of two figures, or says why there is none.
func both(a, b figure, name string, line func(a, b float64, name string) lab.Line) lab.Line {
	switch {
	case !a.there:
		return lab.Skip(name, a.remark)
	case !b.there:
		return lab.Skip(name, b.remark)
	case a.remark == "":
		return line(a.value, b.value, b.named(name))
	}
	return line(a.value, b.value, a.named(name))
}
