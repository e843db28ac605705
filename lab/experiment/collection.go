package experiment

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Collection is a set of experiments and their scenarios.
type Collection struct {
	// Files has the experiments as *.yaml in its root.
	Files fs.FS
	// Scenarios are keyed by the names that files use, PACKAGE/SCENARIO.
	Scenarios map[string]Scenario
}

// Library holds all experiments, checked against their scenarios. It is immutable.
type Library struct {
	experiments []*Experiment
	scenarios   map[string]Scenario
}

// ErrName reports that there is no experiment of a name.
var ErrName = errors.New("no such experiment")

// NewLibrary reads the files of all collections. Names must be unique over all collections.
func NewLibrary(collections ...Collection) (*Library, error) {
	l := &Library{scenarios: make(map[string]Scenario)}
	for _, c := range collections {
		for name, scenario := range c.Scenarios {
			if l.scenarios[name] != nil {
				return nil, fmt.Errorf("%w: two scenarios are named %s", ErrFile, name)
			}
			l.scenarios[name] = scenario
		}
	}
	for _, c := range collections {
		if c.Files == nil {
			continue
		}
		names, err := fs.Glob(c.Files, "*.yaml")
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if err := l.add(c.Files, name); err != nil {
				return nil, err
			}
		}
	}
	return l, nil
}

func (l *Library) add(files fs.FS, name string) error {
	text, err := fs.ReadFile(files, name)
	if err != nil {
		return err
	}
	e, err := l.Parse(text)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if want := strings.TrimSuffix(path.Base(name), ".yaml"); e.Name != want {
		return fmt.Errorf("%w: %s: name is %q, expected the name of the file", ErrFile, name, e.Name)
	}
	if _, err := l.Find(e.Name); err == nil {
		return fmt.Errorf("%w: two experiments are named %s", ErrFile, e.Name)
	}
	l.experiments = append(l.experiments, e)
	return nil
}

// Experiments returns all experiments, in the order of the collections, and by name within a collection.
func (l *Library) Experiments() []*Experiment { return slices.Clone(l.experiments) }

// Find returns an experiment by its name. The error wraps ErrName and lists the known names.
func (l *Library) Find(name string) (*Experiment, error) {
	names := make([]string, len(l.experiments))
	for i, e := range l.experiments {
		if e.Name == name {
			return e, nil
		}
		names[i] = e.Name
	}
	return nil, fmt.Errorf("%w: %q; expected one of %s", ErrName, name, strings.Join(names, ", "))
}

// Scenarios returns the names of all scenarios, sorted.
func (l *Library) Scenarios() []string {
	var names []string
	for name := range l.scenarios {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
