package experiment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/volsfu/volsfu/lab"
)

// Scenario is what an experiment does in one cell of its matrix.
type Scenario interface {
	// Quantities are the figures that an outcome may have, in the order of tables.
	Quantities() []Quantity
	// Check tells what is wrong with the parameters of a cell, before anything runs.
	Check(Parameters) error
	// Run measures one iteration of a cell. An error makes the iteration a failed one; what is only missing on this machine is an outcome that Skip has made.
	Run(ctx context.Context, cell Cell, settings Settings) (*Outcome, error)
}

// Quantity is something that scenarios measure.
type Quantity struct {
	// Name is what files call it, in lower case with underscores, without unit: latency, latency_p95, encode.
	Name string `json:"name"`
	// Unit is that of all its figures, as it is printed: ms, Mbit/s, frames/s, %.
	Unit string `json:"unit"`
	// Label is what it is, in a few words, for tables and axes.
	Label string `json:"label"`
}

// Settings are what a scenario gets beside the parameters of its cell.
type Settings struct {
	// Duration is how long is measured; warming up comes before it.
	Duration time.Duration
	// Iteration counts from 0. Seed differs between iterations, and is the same for all cells of one: they see the same content.
	Iteration int
	Seed      uint64
	// Data is the folder of the test data; "" has the synthetic figure stand in, which Outcome.Note should say.
	Data string
	// Folder is for what the iteration writes; it is there, empty, and kept beside the report, large files compressed, unless the run is told otherwise.
	Folder string
	// Shared is a folder that all cells and iterations of a run have in common, for frames that are prepared once.
	Shared string
	// Programs is the folder of volsfu, volpeer and vollab; "" is that of the running program.
	Programs string
	Progress lab.Progress
}

// Program is the path of one of the module's programs. The error wraps lab.ErrProgram.
func (s *Settings) Program(name string) (string, error) {
	if s.Programs == "" {
		return lab.FindProgram(name)
	}
	return lab.FindProgramIn(s.Programs, name)
}

// File is the path of a file in the iteration's folder.
func (s *Settings) File(name string) string { return filepath.Join(s.Folder, name) }

// ErrParameters says that a scenario cannot be run with what a file asks of it.
var ErrParameters = errors.New("parameters")

// validator is what parameters may implement to be checked.
type validator interface{ Validate() error }

// Define makes a scenario of a function whose parameters are the fields of P, by their yaml tags. Parameters that a file does not name are those of defaults; one that
// P does not have is an error. Where P has a method Validate() error, it is asked of every cell before anything runs.
func Define[P any](defaults P, quantities []Quantity, run func(context.Context, P, Settings) (*Outcome, error)) Scenario {
	return &definition[P]{defaults, quantities, run}
}

type definition[P any] struct {
	defaults   P
	quantities []Quantity
	run        func(context.Context, P, Settings) (*Outcome, error)
}

// Quantities implements Scenario.
func (d *definition[P]) Quantities() []Quantity { return d.quantities }

// Check implements Scenario.
func (d *definition[P]) Check(parameters Parameters) error {
	_, err := d.decode(parameters)
	return err
}

// Run implements Scenario.
func (d *definition[P]) Run(ctx context.Context, cell Cell, settings Settings) (*Outcome, error) {
	p, err := d.decode(cell.Parameters)
	if err != nil {
		return nil, err
	}
	return d.run(ctx, p, settings)
}

// decode reads parameters one after the other, so that an error names the one that is wrong.
func (d *definition[P]) decode(parameters Parameters) (P, error) {
	p := d.defaults
	for _, parameter := range parameters {
		text, err := yaml.Marshal(Parameters{parameter})
		if err != nil {
			return p, fmt.Errorf("%w: %s: %w", ErrParameters, parameter.Name, err)
		}
		decoder := yaml.NewDecoder(bytes.NewReader(text))
		decoder.KnownFields(true)
		if err := decoder.Decode(&p); err != nil {
			return p, fmt.Errorf("%w: %s: %w", ErrParameters, parameter.Name, err)
		}
	}
	if v, ok := any(p).(validator); ok {
		if err := v.Validate(); err != nil {
			return p, fmt.Errorf("%w: %w", ErrParameters, err)
		}
	}
	return p, nil
}
