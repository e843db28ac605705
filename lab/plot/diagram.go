package plot

import "errors"

// Diagram is one picture.
type Diagram struct {
	Title string
	X     Axis
	// Groups name the positions 0, 1, … of the horizontal axis, for bars; nil where it has numbers. A name may have
	// several lines.
	Groups []string
	// Reference is what the legend calls the References of bars.
	Reference string
	Panels    []Panel
}

// Axis is one scale of a panel.
type Axis struct {
	// Label says what it is, and its unit: latency, ms.
	Label string
	// FromZero has the axis begin at 0, else with the least value. Bars always do.
	FromZero bool
	// Whole has no ticks between whole numbers, as of what is counted.
	Whole bool
	// Log has powers of ten at equal distances; what is not greater than 0 is left out then.
	Log bool
}

// Panel is one area of a diagram.
type Panel struct {
	Y      Axis
	Curves []Curve
	// Bars stand side by side in each group, or on top of each other where Stacked is set.
	Bars    []Bars
	Stacked bool
	// Limits are horizontal lines.
	Limits []Limit
}

// Curve is a set of points. Those of one name have one colour in all panels, and one line in the legend.
type Curve struct {
	Name   string
	Kind   Kind
	Points []Point
	// Like is the name whose colour a Reference has; "" is black.
	Like string
}

// Kind is how a curve is drawn.
type Kind int

// The kinds of curves.
const (
	// Line joins the points.
	Line Kind = iota
	// LineAndDots joins them and shows each.
	LineAndDots
	// Steps hold each value from the point before.
	Steps
	// Dots are not joined.
	Dots
	// Reference are hollow diamonds that are not joined: what somebody else has measured.
	Reference
)

// Bars are one bar per group, of one colour.
type Bars struct {
	Name string
	// Points have the number of their group as X.
	Points []Point
	// References are what somebody else has measured of the same, drawn as hollow diamonds on the bars. They have the
	// number of their group as X, too.
	References []Point
}

// Point is a value. Where Low is less than High, the interval from Low to High is drawn, too. Mark is written beside
// the point of a curve, "" is nothing.
type Point struct {
	X, Y, Low, High float64
	Mark            string
}

// Limit is a horizontal line with words.
type Limit struct {
	Value float64
	Label string
}

// ErrEmpty says that there is nothing to draw.
var ErrEmpty = errors.New("a diagram without points")

// drawable tells whether a point can be seen on an axis.
func (a *Axis) drawable(v float64) bool { return isFinite(v) && (!a.Log || v > 0) }

// empty tells whether no panel has a point.
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

// all are the points of every bar and curve.
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

// names are those of bars and curves of all panels, each once, in their order.
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

// referenced tells whether any bar has a reference.
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
