// Package experimenttest has an experiment for tests: a scenario whose figures follow from its parameters, so that
// tests know the results.
package experimenttest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/volsfu/volsfu/lab/experiment"
)

// Waves holds the parameters of the scenario, which uses no network.
type Waves struct {
	Height float64 `yaml:"height"`
	Wind   string  `yaml:"wind"`
	Frames int     `yaml:"frames"`
	// Fate is the outcome of an iteration: sinks (an error), skipped, slow (the processors were busy), late (the
	// measurement was disturbed); any other value is a valid iteration.
	Fate string `yaml:"fate"`
}

// Validate is called by package experiment for every cell.
func (w Waves) Validate() error {
	if w.Height < 0 {
		return fmt.Errorf("height: expected 0 or more, got %g", w.Height)
	}
	return nil
}

// Quantities returns the quantities of the scenario.
func Quantities() []experiment.Quantity {
	return []experiment.Quantity{
		{Name: "latency", Unit: "ms", Label: "latency"}, {Name: "rate", Unit: "Mbit/s", Label: "bit rate"},
		{Name: "decode", Unit: "ms", Label: "decoding"}, {Name: "encode", Unit: "ms", Label: "encoding"},
	}
}

// ErrStorm is the error of an iteration that sinks.
var ErrStorm = errors.New("the boat sank")

// Run runs an iteration. The latency of frames has the mean Height + the number of the iteration, the rate is half of
// the height, and encoding and decoding take Height and a quarter of Height.
func Run(_ context.Context, w Waves, s experiment.Settings) (*experiment.Outcome, error) {
	switch w.Fate {
	case "sinks":
		return nil, ErrStorm
	case "skipped":
		return experiment.Skip("there is no %s", "sea"), nil
	}
	o := experiment.NewOutcome()
	samples := make([]float64, w.Frames)
	points := make([][2]float64, w.Frames)
	for i := range samples {
		// Each ten samples sum up to 0, so the means are known. Iterations differ by their number.
		samples[i] = w.Height + float64(i%10) - 4.5 + float64(s.Iteration)
		points[i] = [2]float64{float64(i) / 10, samples[i]}
	}
	o.Sample("latency", samples)
	o.Set("rate", w.Height/2)
	o.Set("encode", w.Height)
	o.Set("decode", w.Height/4)
	o.Series("latency over time", "s", "ms", points)
	o.Note("the sea is a sine")
	o.Judge(experiment.Pace{Wanted: 100, Done: 90, DroppedByCPU: map[string]int{"slow": 10}[w.Fate], Busy: 0.5})
	if w.Fate == "late" {
		o.Invalidate("the tide was late")
	}
	return o, nil
}

// File is the file of an experiment with three iterations of four cells and a plot of each kind.
const File = `
name: waves
title: Waves by height and wind
paper: "042"
where: Table 1
about: Water moves up and down.
scenario: test/waves
iterations: 3
seconds: 2
short: {iterations: 1, seconds: 0.5}
parameters: {frames: 100}
matrix:
  - {wind: west, height: [10, 20], short: true}
  - {wind: [east], height: [10, 30]}
figures: [latency, rate]
why: Our sea is smaller.
references:
  - {cell: {wind: west, height: 10}, figure: latency, value: 12.5, plus_minus: 1.5}
  - {cell: {height: 30}, figure: latency, value: 40, deviation: 2.5}
comparisons:
  - {name: twice the height, figure: latency, of: {wind: west, height: 20}, to: {wind: west, height: 10},
     as: ratio, paper: 1.9}
  - {name: how much less, figure: rate, of: {wind: west, height: 10}, to: {wind: east, height: 30}, as: less}
plots:
  - {name: latency, title: Latency & height, kind: bars, x: [height], split: [wind], figures: [latency, rate],
     limits: [{value: 33, label: one frame, figure: latency}]}
  - {name: stages, title: Stages, kind: stacked, x: [wind, height], figures: [encode, decode], label: a frame's time}
  - {name: over-height, title: Over height, kind: lines, x: [height], x_label: "height, m",
     split: [wind], figures: [latency]}
  - {name: shares, title: Shares, kind: distribution, figures: [latency]}
  - {name: time, title: Over time, kind: series, series: [latency over time], where: {wind: west}, label: latency}
`

// Scenario is a function that runs an iteration of the scenario.
type Scenario func(context.Context, Waves, experiment.Settings) (*experiment.Outcome, error)

// Library returns a library with a scenario, named test/waves, and with files by their names.
func Library(run Scenario, files map[string]string) (*experiment.Library, error) {
	folder := fstest.MapFS{}
	for name, text := range files {
		folder[name] = &fstest.MapFile{Data: []byte(text)}
	}
	scenario := experiment.Define(Waves{Wind: "none", Frames: 100}, Quantities(), run)
	return experiment.NewLibrary(experiment.Collection{Files: folder,
		Scenarios: map[string]experiment.Scenario{"test/waves": scenario}})
}

// Parse returns the experiment of a file of the scenario.
func Parse(t testing.TB, run Scenario, text string) *experiment.Experiment {
	t.Helper()
	l, err := Library(run, nil)
	if err != nil {
		t.Fatal(err)
	}
	e, err := l.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Result runs an experiment into a folder of the test.
func Result(t testing.TB, e *experiment.Experiment, o experiment.Options) *experiment.Result {
	t.Helper()
	folder := t.TempDir()
	o.Folder, o.Shared, o.Version = filepath.Join(folder, "report"), filepath.Join(folder, "shared"), "test"
	r, err := e.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Fates is the file of an experiment with a cell for each outcome.
const Fates = `
name: fates
title: What may happen
scenario: test/waves
iterations: 2
seconds: 1
parameters: {height: 8}
matrix:
  - {fate: [good, sinks, skipped, slow, late]}
plots:
  - {name: latency, title: Latency, kind: bars, x: [fate], figures: [latency]}
`
