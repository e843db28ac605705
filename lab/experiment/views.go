package experiment

import (
	"errors"
	"fmt"
	"slices"
)

// The kinds of plots.
const (
	// KindBars draws groups of bars with their intervals: a group per value of X, a colour per value of Split.
	KindBars = "bars"
	// KindStacked draws bars whose parts add up: a bar per value of X, a colour per figure.
	KindStacked = "stacked"
	// KindLines joins cells along one numeric parameter, with their intervals.
	KindLines = "lines"
	// KindDistribution shows, per cell, the share of the samples that do not exceed a value.
	KindDistribution = "distribution"
	// KindSeries shows an outcome's series over time, of the first usable iteration.
	KindSeries = "series"
)

var plotKinds = []string{KindBars, KindStacked, KindLines, KindDistribution, KindSeries}

// Plot is a diagram of the report.
type Plot struct {
	// Name is that of the file, without extension.
	Name  string `yaml:"name"`
	Title string `yaml:"title"`
	Kind  string `yaml:"kind"`
	// X lists the parameters along the axis: for lines, one numeric parameter; for bars, the parameters whose values
	// name the groups.
	X []string `yaml:"x"`
	// XLabel and Label are labels of axes that do not follow from the quantities: XLabel of the horizontal axis except
	// for distributions, Label of the vertical axis of stacked bars and series.
	XLabel string `yaml:"x_label"`
	Label  string `yaml:"label"`
	// Split lists the parameters whose values have colours.
	Split []string `yaml:"split"`
	// Where limits the plot to some cells.
	Where Parameters `yaml:"where"`
	// Figures are the shown figures. Bars and lines of several figures, and figures of several units, use a panel each.
	Figures []string `yaml:"figures"`
	// Series are the names of the series shown over time; series with different units use a panel each.
	Series []string `yaml:"series"`
	// Limits are drawn as horizontal lines.
	Limits []Limit `yaml:"limits"`
	// Log selects a logarithmic vertical axis.
	Log bool `yaml:"log"`
}

// Limit is a bound drawn in a plot.
type Limit struct {
	Value float64 `yaml:"value"`
	Label string  `yaml:"label"`
	// Figure names the panel; empty selects all panels.
	Figure string `yaml:"figure"`
}

func (p *Plot) check(e *Experiment) error {
	switch {
	case !nameForm.MatchString(p.Name):
		return fmt.Errorf("name: expected lower-case letters, digits and dashes, got %.70q", p.Name)
	case p.Title == "":
		return errors.New("title: expected one or more words")
	case !slices.Contains(plotKinds, p.Kind):
		return fmt.Errorf("kind: expected one of %v, got %q", plotKinds, p.Kind)
	case (p.Kind == KindSeries) != (len(p.Series) > 0), (p.Kind == KindSeries) == (len(p.Figures) > 0):
		return fmt.Errorf("expected names under series if the kind is %s, otherwise under figures", KindSeries)
	case p.Kind == KindLines && len(p.X) != 1:
		return errors.New("x: lines require one parameter")
	case p.Kind == KindLines && p.XLabel == "":
		return errors.New("x_label: expected the name of the parameter with its unit")
	case (p.Kind == KindBars || p.Kind == KindStacked) && len(p.X) == 0:
		return errors.New("x: expected at least one parameter")
	case p.Kind == KindDistribution && len(p.Figures) != 1:
		return errors.New("figures: a distribution shows one figure")
	case len(e.matching(p.Where)) == 0:
		return fmt.Errorf("where: no cell has %s", p.Where)
	}
	for _, name := range p.Figures {
		if _, ok := e.Quantity(name); !ok {
			return e.unknownFigure(name)
		}
	}
	if err := p.checkUnits(e); err != nil {
		return err
	}
	for _, l := range p.Limits {
		if l.Figure != "" && !slices.Contains(p.Figures, l.Figure) {
			return fmt.Errorf("limits: %q is not among the plot's figures", l.Figure)
		}
	}
	return p.checkAxes(e.matching(p.Where))
}

// checkUnits checks that stacked figures have the same unit.
func (p *Plot) checkUnits(e *Experiment) error {
	if p.Kind != KindStacked {
		return nil
	}
	first, _ := e.Quantity(p.Figures[0])
	for _, name := range p.Figures {
		if q, _ := e.Quantity(name); q.Unit != first.Unit {
			return fmt.Errorf("figures: %s is in %s and %s in %s: expected the same unit", first.Name, first.Unit,
				q.Name, q.Unit)
		}
	}
	return nil
}

// checkAxes checks that the cells have the parameters that the plot names, and numbers for the parameter of lines.
func (p *Plot) checkAxes(cells []Cell) error {
	for _, name := range slices.Concat(p.X, p.Split) {
		for _, c := range cells {
			if _, ok := c.Parameters.Value(name); !ok {
				return fmt.Errorf("cells have no parameter %q", name)
			}
		}
	}
	if p.Kind != KindLines {
		return nil
	}
	for _, c := range cells {
		if _, err := c.Number(p.X[0]); err != nil {
			return err
		}
	}
	return nil
}
