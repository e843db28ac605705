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
	"github.com/volsfu/volsfu/lab/hosts"
)

// Scenario is the work of an experiment in one cell of its matrix.
type Scenario interface {
	// Quantities are the figures that an outcome may have, in the order of tables.
	Quantities() []Quantity
	// Check reports invalid parameters of a cell. It is called before anything runs.
	Check(Parameters) error
	// Run measures one iteration of a cell. After an error, the iteration counts as failed. If the machine lacks a
	// requirement, Run returns an outcome of Skip instead.
	Run(ctx context.Context, cell Cell, settings Settings) (*Outcome, error)
}

// Quantity is a quantity that scenarios measure.
type Quantity struct {
	// Name is the name in files, in lower case with underscores, without unit: latency, latency_p95, encode.
	Name string `json:"name"`
	// Unit is the unit of the quantity's figures, as printed: ms, Mbit/s, frames/s, %.
	Unit string `json:"unit"`
	// Label describes the quantity in a few words, for tables and axes.
	Label string `json:"label"`
	// Of is the name of a quantity with samples of which this quantity is a quantile, Share its share (0 to 1). Such a
	// quantity is computed after the run, also for a journal of a version that did not have the quantity. Of is empty
	// for all other quantities, which scenarios measure.
	Of    string  `json:"of,omitempty"`
	Share float64 `json:"share,omitempty"`
}

// Settings are the inputs of a scenario in addition to the parameters of its cell.
type Settings struct {
	// Duration is the measured time, without warming up.
	Duration time.Duration
	// Iteration counts from 0. Seed differs between iterations and is the same for all cells of one iteration, so that
	// all cells have the same content.
	Iteration int
	Seed      uint64
	// Data is the folder of the test data. If Data is empty, the scenario uses the synthetic figure, and Outcome.Note
	// should say so.
	Data string
	// Folder is the folder for the output of the iteration, empty at the beginning. The folder is kept beside the
	// report, with large files compressed, unless the run has NoRaw.
	Folder string
	// Shared is a folder common to all cells and iterations of a run, for frames that are prepared once.
	Shared string
	// Programs is the folder of volsfu, volpeer and vollab; empty selects that of the running program.
	Programs string
	// Hosts run the roles of the scenario, nil if this machine runs all of them.
	Hosts *hosts.Session
	// Source replaces the source of clouds of the scenario if it is not empty, as in realsense.
	Source   string
	Progress lab.Progress
}

// Program returns the path of one of the module's programs. The error wraps lab.ErrProgram.
func (s *Settings) Program(name string) (string, error) {
	return lab.FindProgramIn(s.Programs, name)
}

// File returns the path of a file in the iteration's folder.
func (s *Settings) File(name string) string { return filepath.Join(s.Folder, name) }

// ErrParameters reports that a scenario cannot run with the parameters of a file.
var ErrParameters = errors.New("parameters")

// validator is implemented by parameters that can be checked.
type validator interface{ Validate() error }

// Define returns a scenario for a function whose parameters are the fields of P, by their yaml tags. A parameter that a
// file does not name has its value in defaults; a parameter that P does not have is an error. If P has a method
// Validate() error, the method is called for every cell before anything runs.
func Define[P any](defaults P, quantities []Quantity, run func(context.Context, P, Settings) (*Outcome,
	error)) Scenario {
	return &definition[P]{defaults, quantities, run}
}

type definition[P any] struct {
	defaults   P
	quantities []Quantity
	run        func(context.Context, P, Settings) (*Outcome, error)
}

// Remote is implemented by scenarios that can run on several machines (Settings.Hosts).
type Remote interface {
	// Roles returns the roles of a cell, which run on machines of their own.
	Roles(Parameters) []string
}

// OnHosts returns a scenario that implements Remote with the same roles for all cells.
func OnHosts(s Scenario, roles ...string) Scenario { return &distributed{s, roles} }

type distributed struct {
	Scenario
	roles []string
}

// Roles implements Remote.
func (d *distributed) Roles(Parameters) []string { return d.roles }

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

// decode reads parameters one by one, so that an error names the invalid parameter.
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
