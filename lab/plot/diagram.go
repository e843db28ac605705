package plot

import "errors"

// Diagram is one picture.
type Diagram struct {
	Title string
	X     Axis
	// Groups has the names of the positions 0, 1, … of the horizontal axis, for bars. Groups is nil if the axis has
	// numbers. A name may have several lines.
	Groups []string
	// Reference is the name of the bars' References in the legend.
	Reference string
	Panels    []Panel
}

// Axis is one scale of a panel.
type Axis struct {
	// Label has the quantity and the unit, as in "latency, ms".
	Label string
	// FromZero makes the axis begin at 0. Without FromZero, the axis begins with the smallest value. With bars, the
	// axis always begins at 0.
	FromZero bool
	// Whole restricts ticks to whole numbers, for counts.
	Whole bool
	// Log makes the axis logarithmic. Values that are not greater than 0 are omitted.
	Log bool
}

// Panel is one area of a diagram.
type Panel struct {
	Y      Axis
	Curves []Curve
	// Bars are side by side in each group, or stacked if Stacked is set.
	Bars    []Bars
	Stacked bool
	// Limits are horizontal lines.
	Limits []Limit
}

// Curve is a set of points. Curves with the same name have the same colour in all panels and one entry in the legend.
type Curve struct {
	Name   string
	Kind   Kind
	Points []Point
	// Like is the name whose colour a Reference has; "" is black.
	Like string
}

// Kind is the style of a curve.
type Kind int

// The kinds of curves.
const (
	// Line joins the points.
	Line Kind = iota
	// LineAndDots joins the points and shows each.
	LineAndDots
	// Steps holds each value from the previous point on.
	Steps
	// Dots shows the points without a line.
	Dots
	// Reference shows hollow diamonds without a line, for the values of other authors.
	Reference
)

// Bars is one bar per group, of one colour.
type Bars struct {
	Name string
	// Points have the number of their group as X.
	Points []Point
	// References are values of other authors, drawn as hollow diamonds on the bars. They also have the number of their
	// group as X.
	References []Point
}

// Point is a value. If Low is less than High, the interval from Low to High is also drawn. Mark is written beside the
// point of a curve, unless it is empty.
type Point struct {
	X, Y, Low, High float64
	Mark            string
}

// Limit is a horizontal line with a label.
type Limit struct {
	Value float64
	Label string
}

// ErrEmpty is returned if there is nothing to draw.
var ErrEmpty = errors.New("a diagram without points")

// drawable reports whether a value can be drawn on an axis.
func (a *Axis) drawable(v float64) bool { return isFinite(v) && (!a.Log || v > 0) }

// empty reports whether no panel has a point.
func (d *Diagram) empty() bool {
	for i := range d.Panels {
		p := &d.Panels[i]
		for _, points := range p.all() {
			for _, point := range points {
				if d.X.drawable(point.X) && p.Y.drawable(point.Y) {
					return false
				}
			}
		}
	}
	return true
}

// all returns the points of every bar and curve.
func (p *Panel) all() [][]Point {
	var all [][]Point
	for _, c := range p.Curves {
		all = append(all, c.Points)
	}
	for _, b := range p.Bars {
		all = append(all, b.Points)
	}
	return all
}

// names returns the distinct names of bars and curves of all panels, in order.
func (d *Diagram) names() []string {
	var names []string
	seen := make(map[string]bool)
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	for i := range d.Panels {
		for _, b := range d.Panels[i].Bars {
			add(b.Name)
		}
		for _, c := range d.Panels[i].Curves {
			add(c.Name)
		}
	}
	if d.referenced() {
		add(d.Reference)
	}
	return names
}

// referenced reports whether any bar has a reference.
func (d *Diagram) referenced() bool {
	for i := range d.Panels {
		for _, b := range d.Panels[i].Bars {
			if len(b.References) > 0 {
				return true
			}
		}
	}
	return false
}
