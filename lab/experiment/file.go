package experiment

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/volsfu/volsfu/lab/inference"
)

// ErrFile reports an invalid file of an experiment.
var ErrFile = errors.New("experiment file")

// Bounds of a file. A file beyond these bounds is a mistake.
const (
	maxFileBytes  = 1 << 20
	maxCells      = 10_000
	maxIterations = 1000
)

// Experiment is the checked content of a file.
type Experiment struct {
	// Name is the argument of vollab run.
	Name  string `yaml:"name"`
	Title string `yaml:"title"`
	// Paper is the number of the repeated paper, Where the place in the paper; both are empty without a paper.
	Paper string `yaml:"paper"`
	Where string `yaml:"where"`
	// About describes the experiment, for the report.
	About    string `yaml:"about"`
	Scenario string `yaml:"scenario"`
	// Iterations and Seconds are the extent of full runs, Short the extent of short runs.
	Iterations int     `yaml:"iterations"`
	Seconds    float64 `yaml:"seconds"`
	Short      Extent  `yaml:"short"`
	// Parameters are the same for all cells.
	Parameters Parameters `yaml:"parameters"`
	Matrix     Matrix     `yaml:"matrix"`
	// Figures are the quantities of tables, in order; empty selects all quantities of the scenario.
	Figures []string `yaml:"figures"`
	Plots   []Plot   `yaml:"plots"`
	// References are the paper's figures, Comparisons its relations between figures. Why explains in one or two
	// sentences why our figures differ.
	References  []Reference  `yaml:"references"`
	Comparisons []Comparison `yaml:"comparisons"`
	Why         string       `yaml:"why"`

	scenario Scenario
	cells    []Cell
	// text is that of the file.
	text []byte
}

// Extent is the number and the length of iterations.
type Extent struct {
	Iterations int     `yaml:"iterations"`
	Seconds    float64 `yaml:"seconds"`
}

// Duration returns the measured time of one iteration.
func (e Extent) Duration() time.Duration { return time.Duration(e.Seconds * float64(time.Second)) }

// The papers' extent, and that of short runs.
var (
	fullExtent  = Extent{Iterations: 10, Seconds: 60}
	shortExtent = Extent{Iterations: 1, Seconds: 10}
)

// Reference is a figure that the paper has printed.
type Reference struct {
	// Cell holds parameters that select the compared cells.
	Cell   Parameters `yaml:"cell"`
	Figure string     `yaml:"figure"`
	Value  float64    `yaml:"value"`
	Bound  `yaml:",inline"`
	// PlusMinus is half the paper's interval, 0 if the paper has none.
	PlusMinus float64 `yaml:"plus_minus"`
	// Deviation is the paper's standard deviation over its iterations, 0 if the paper has none. Deviation describes the
	// spread of iterations, not the uncertainty of their mean.
	Deviation float64 `yaml:"deviation"`
	// Why explains the difference of this figure if the experiment's explanation does not apply.
	Why string `yaml:"why"`
}

// Bound states that a value of the paper is a bound. At most one field is set.
type Bound struct {
	// AtMost is set if the paper states that the figure is less than its value, AtLeast if it is greater.
	AtMost  bool `yaml:"at_most" json:"at_most,omitempty"`
	AtLeast bool `yaml:"at_least" json:"at_least,omitempty"`
}

// Sign returns the sign in front of the paper's value, as in "< ", empty without a bound.
func (b Bound) Sign() string {
	switch {
	case b.AtMost:
		return "< "
	case b.AtLeast:
		return "> "
	}
	return ""
}

// errBounds reports a value of the paper with two bounds.
var errBounds = errors.New("expected at_most or at_least, not both")

// Comparison is a relation between the figures of two cells, in the forms that papers use: 4.63 times as long, 21 %
// more.
type Comparison struct {
	// Name is the claim, in a few words.
	Name   string `yaml:"name"`
	Figure string `yaml:"figure"`
	// The figure of Of is divided by the figure of To. Each must match one cell.
	Of Parameters `yaml:"of"`
	To Parameters `yaml:"to"`
	// As is ratio (of / to), more (by how many per cent of exceeds to), or less (by how many per cent of is below to).
	As string `yaml:"as"`
	// Paper is the paper's figure, nil if the paper has none.
	Paper *float64 `yaml:"paper"`
	Bound `yaml:",inline"`
	Why   string `yaml:"why"`
}

// The relations.
const (
	asRatio = "ratio"
	asMore  = "more"
	asLess  = "less"
)

// relate returns the relation of two figures.
func (c *Comparison) relate(of, to float64) float64 {
	switch c.As {
	case asMore:
		return 100 * (of/to - 1)
	case asLess:
		return 100 * (1 - of/to)
	}
	return of / to
}

// interval returns the interval of the relation of two sets of values, nil if there is none.
func (c *Comparison) interval(of, to []float64) *inference.Interval {
	i := inference.Ratio(of, to)
	if i == nil {
		return nil
	}
	low, high := c.relate(i.Low, 1), c.relate(i.High, 1)
	return &inference.Interval{Low: min(low, high), High: max(low, high), Method: i.Method}
}

// unit returns the unit of the relation.
func (c *Comparison) unit() string {
	if c.As == asRatio {
		return "×"
	}
	return "%"
}

// Cells returns the cells of the matrix in the order of the file.
func (e *Experiment) Cells() []Cell { return slices.Clone(e.cells) }

// Quantities returns the quantities of the scenario.
func (e *Experiment) Quantities() []Quantity { return e.scenario.Quantities() }

// Quantity returns one of the scenario's quantities by its name.
func (e *Experiment) Quantity(name string) (Quantity, bool) {
	all := e.scenario.Quantities()
	if i := slices.IndexFunc(all, func(q Quantity) bool { return q.Name == name }); i >= 0 {
		return all[i], true
	}
	return Quantity{}, false
}

// Parse reads a file's text and checks all of it: every key, every cell against the scenario, and every figure and
// parameter that plots and references name. The error wraps ErrFile.
func (l *Library) Parse(text []byte) (*Experiment, error) {
	if len(text) > maxFileBytes {
		return nil, fmt.Errorf("%w: %d bytes, expected at most %d", ErrFile, len(text), maxFileBytes)
	}
	e := &Experiment{Iterations: fullExtent.Iterations, Seconds: fullExtent.Seconds, Short: shortExtent,
		text: slices.Clone(text)}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(e); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("the file is empty")
		}
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	var more yaml.Node
	if decoder.Decode(&more) == nil {
		return nil, fmt.Errorf("%w: expected one document", ErrFile)
	}
	if err := e.check(l.scenarios); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	return e, nil
}

// nameForm is the form of experiments' names, which become names of files and folders.
var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`)

func (e *Experiment) check(scenarios map[string]Scenario) error {
	switch {
	case !nameForm.MatchString(e.Name):
		return fmt.Errorf("name: expected lower-case letters, digits and dashes, got %.70q", e.Name)
	case e.Title == "":
		return errors.New("title: expected one or more words")
	case scenarios[e.Scenario] == nil:
		return fmt.Errorf("scenario: unknown name %q", e.Scenario)
	case (len(e.References) > 0 || len(e.Comparisons) > 0) && strings.TrimSpace(e.Why) == "":
		return errors.New("why: expected a sentence on why our figures differ from the paper's")
	}
	for _, extent := range []Extent{{e.Iterations, e.Seconds}, e.Short} {
		if err := extent.check(); err != nil {
			return err
		}
	}
	e.scenario = scenarios[e.Scenario]
	var err error
	if e.cells, err = e.Matrix.cells(e.Parameters); err != nil {
		return err
	}
	for _, c := range e.cells {
		if err := e.scenario.Check(c.Parameters); err != nil {
			return fmt.Errorf("cell %s: %w", c.Name(), err)
		}
	}
	return e.checkViews()
}

func (e Extent) check() error {
	if e.Iterations < 1 || e.Iterations > maxIterations {
		return fmt.Errorf("iterations: expected 1 to %d, got %d", maxIterations, e.Iterations)
	}
	if !(e.Seconds > 0 && e.Seconds <= 24*3600) {
		return fmt.Errorf("seconds: expected more than 0 and at most a day, got %g", e.Seconds)
	}
	return nil
}

// checkViews checks the names used by tables, plots and comparisons.
func (e *Experiment) checkViews() error {
	for _, name := range e.Figures {
		if _, ok := e.Quantity(name); !ok {
			return fmt.Errorf("figures: %w", e.unknownFigure(name))
		}
	}
	for i := range e.Plots {
		if err := e.Plots[i].check(e); err != nil {
			return fmt.Errorf("plots: %d: %w", i+1, err)
		}
	}
	for _, r := range e.References {
		if _, ok := e.Quantity(r.Figure); !ok {
			return fmt.Errorf("references: %w", e.unknownFigure(r.Figure))
		}
		if len(e.matching(r.Cell)) == 0 {
			return fmt.Errorf("references: no cell has %s", r.Cell)
		}
		if r.AtMost && r.AtLeast {
			return fmt.Errorf("references: %s of %s: %w", r.Figure, r.Cell, errBounds)
		}
	}
	for _, c := range e.Comparisons {
		if err := c.check(e); err != nil {
			return fmt.Errorf("comparisons: %q: %w", c.Name, err)
		}
	}
	return nil
}

func (c *Comparison) check(e *Experiment) error {
	switch {
	case c.Name == "":
		return errors.New("name: expected one or more words")
	case !slices.Contains([]string{asRatio, asMore, asLess}, c.As):
		return fmt.Errorf("as: expected %s, %s or %s, got %q", asRatio, asMore, asLess, c.As)
	case c.AtMost && c.AtLeast:
		return errBounds
	case (c.AtMost || c.AtLeast) && c.Paper == nil:
		return errors.New("paper: expected the value of the bound")
	}
	if _, ok := e.Quantity(c.Figure); !ok {
		return e.unknownFigure(c.Figure)
	}
	for _, side := range []Parameters{c.Of, c.To} {
		if n := len(e.matching(side)); n != 1 {
			return fmt.Errorf("%q matches %d cells, expected one", side, n)
		}
	}
	return nil
}

func (e *Experiment) unknownFigure(name string) error {
	var names []string
	for _, q := range e.scenario.Quantities() {
		names = append(names, q.Name)
	}
	return fmt.Errorf("scenario %s has no figure %q; it has %s", e.Scenario, name, strings.Join(names, ", "))
}

// matching returns the cells that have some parameters.
func (e *Experiment) matching(some Parameters) []Cell {
	return slices.DeleteFunc(e.Cells(), func(c Cell) bool { return !c.Parameters.Match(some) })
}
