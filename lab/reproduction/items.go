package reproduction

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/volsfu/volsfu/lab/experiment"
)

//go:embed items.yaml
var itemsText []byte

// ErrItems reports an invalid list of items.
var ErrItems = errors.New("items of the papers")

// titles are authors, title and place of the papers.
var titles = map[string]string{
	"000": "De Fré et al., Low-Latency Volumetric Video Conferencing in Congested Networks Through L4S, MMSys 2025",
	"001": "WebRTC-Based Volumetric Video Conferencing: SFU Architecture Evaluation and Benchmarking, NOSSDAV 2026",
	"002": "Thomas and Xylomenos, Ultra-low Latency Point Cloud Streaming in 5G",
	"003": "Qian et al., Enabling eBPF-based packet duplication for robust volumetric video streaming",
	"004": "Hong et al., Latency in Real-Time 3D Volumetric Streaming: A Comprehensive Study, 2026",
}

// Item is a table or a figure with results of a paper.
type Item struct {
	Paper string `yaml:"paper" json:"paper"`
	// Place is the item's name in the paper, as in "table 1".
	Place string `yaml:"place" json:"place"`
	Shows string `yaml:"shows" json:"shows"`
	// Conditions are the differences from the paper's conditions and definitions that concern this item, in addition to
	// those that the files of the experiments state.
	Conditions string `yaml:"conditions" json:"conditions,omitempty"`
	// Evidence selects the compared figures.
	Evidence []Evidence `yaml:"evidence" json:"-"`
	// Plots are shown on the page.
	Plots []Plot `yaml:"plots" json:"plots,omitempty"`
}

// Evidence selects references or relations of an experiment.
type Evidence struct {
	Run string `yaml:"run"`
	// Cells are parameters that cells must have; of a relation, the first cell.
	Cells experiment.Parameters `yaml:"cells"`
	// Figures are names of quantities, empty for all.
	Figures []string `yaml:"figures"`
	// Relations selects the relations of cells for which the paper has a value, instead of the values of cells.
	Relations bool `yaml:"relations"`
}

// Plot selects a plot of an experiment.
type Plot struct {
	Run  string `yaml:"run" json:"run"`
	Name string `yaml:"name" json:"name"`
}

// find returns the plot of the experiment.
func (p Plot) find(run *experiment.Experiment) (*experiment.Plot, error) {
	at := slices.IndexFunc(run.Plots, func(one experiment.Plot) bool { return one.Name == p.Name })
	if at < 0 {
		return nil, fmt.Errorf("experiment %s has no plot %s", p.Run, p.Name)
	}
	return &run.Plots[at], nil
}

// Items returns the items of all papers in order. Each selects at least one value of the library.
func Items(l *experiment.Library) ([]Item, error) { return parseItems(itemsText, l) }

func parseItems(text []byte, l *experiment.Library) ([]Item, error) {
	var items []Item
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&items); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrItems, err)
	}
	seen := make(map[string]bool)
	for i := range items {
		item := &items[i]
		name := item.Paper + ", " + item.Place
		if item.Paper == "" || item.Place == "" || item.Shows == "" || seen[name] {
			return nil, fmt.Errorf("%w: item %d (%s): expected paper, place and shows, and each place once", ErrItems,
				i+1, name)
		}
		if seen[name] = true; i > 0 && item.Paper < items[i-1].Paper {
			return nil, fmt.Errorf("%w: item %d (%s): expected the items of a paper together", ErrItems, i+1, name)
		}
		if err := item.check(l); err != nil {
			return nil, fmt.Errorf("%w: paper %s: %w", ErrItems, name, err)
		}
	}
	return items, nil
}

// check checks that an item selects values and plots that exist.
func (i *Item) check(l *experiment.Library) error {
	if len(i.Evidence) == 0 {
		return errors.New("expected evidence")
	}
	for _, e := range i.Evidence {
		run, err := l.Find(e.Run)
		if err != nil {
			return err
		}
		if run.Paper != i.Paper {
			return fmt.Errorf("experiment %s is of paper %q", e.Run, run.Paper)
		}
		if len(e.rows(run)) == 0 {
			return fmt.Errorf("experiment %s has no value of the paper for %s %v", e.Run, e.Cells, e.Figures)
		}
	}
	for _, p := range i.Plots {
		run, err := l.Find(p.Run)
		if err != nil {
			return err
		}
		if _, err := p.find(run); err != nil {
			return err
		}
		if !slices.ContainsFunc(i.Evidence, func(e Evidence) bool { return e.Run == p.Run }) {
			return fmt.Errorf("plot %s is of experiment %s, of which the item has no evidence", p.Name, p.Run)
		}
	}
	return nil
}

// Runs returns the names of the experiments of an item.
func (i *Item) Runs() []string {
	var names []string
	add := func(name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, e := range i.Evidence {
		add(e.Run)
	}
	return names
}

// cells returns the cells of an experiment that the item needs, in the order of the file.
func (i *Item) cells(run *experiment.Experiment) []experiment.Cell {
	var names []string
	for _, e := range i.Evidence {
		if e.Run == run.Name {
			names = append(names, e.cells(run)...)
		}
	}
	return slices.DeleteFunc(run.Cells(), func(c experiment.Cell) bool { return !slices.Contains(names, c.Name()) })
}

// rows returns the selected values of the paper, without ours.
func (e *Evidence) rows(run *experiment.Experiment) []Row {
	wanted := func(figure string) bool { return len(e.Figures) == 0 || slices.Contains(e.Figures, figure) }
	var rows []Row
	if e.Relations {
		for _, c := range run.Comparisons {
			if c.Paper != nil && wanted(c.Figure) && c.Of.Match(e.Cells) {
				rows = append(rows, Row{Run: run.Name, Name: c.Name, Paper: *c.Paper, Bound: c.Bound,
					relation: c.Name})
			}
		}
		return rows
	}
	for _, c := range run.Cells() {
		if !c.Parameters.Match(e.Cells) {
			continue
		}
		for _, q := range run.Quantities() {
			if paper := run.PaperFigure(c.Parameters, q.Name); paper != nil && wanted(q.Name) {
				rows = append(rows, Row{Run: run.Name, Cell: c.Name(), Name: q.Label, Unit: q.Unit, Paper: paper.Value,
					PlusMinus: paper.PlusMinus, Bound: paper.Bound, Reason: paper.Why, figure: q.Name})
			}
		}
	}
	return rows
}

// cells returns the names of the cells that the selected values need.
func (e *Evidence) cells(run *experiment.Experiment) []string {
	var names []string
	add := func(c experiment.Cell) {
		if name := c.Name(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, row := range e.rows(run) {
		for _, c := range run.Cells() {
			if c.Name() == row.Cell {
				add(c)
			}
			for _, relation := range run.Comparisons {
				if relation.Name == row.relation &&
					(c.Parameters.Match(relation.Of) || c.Parameters.Match(relation.To)) {
					add(c)
				}
			}
		}
	}
	return names
}
