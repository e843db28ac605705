package experiment

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/fstest"
)

// waves is a scenario without a network. Its figures follow from the parameters, so that tests know the results.
type waves struct {
	Height float64 `yaml:"height"`
	Wind   string  `yaml:"wind"`
	Frames int     `yaml:"frames"`
	Fate   string  `yaml:"fate"`
}

// Validate implements validator.
func (w waves) Validate() error {
	if w.Height < 0 {
		return fmt.Errorf("height: expected 0 or more, got %g", w.Height)
	}
	return nil
}

var waveQuantities = []Quantity{
	{"latency", "ms", "latency"}, {"rate", "Mbit/s", "bit rate"}, {"decode", "ms", "decoding"},
	{"encode", "ms", "encoding"},
}

var errStorm = errors.New("the boat sank")

func runWaves(_ context.Context, w waves, s Settings) (*Outcome, error) {
	switch w.Fate {
	case "sinks":
		return nil, errStorm
	case "skipped":
		return Skip("there is no %s", "sea"), nil
	}
	o := NewOutcome()
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
	o.Judge(Pace{Wanted: 100, Done: 90, DroppedByCPU: map[string]int{"slow": 10}[w.Fate], Busy: 0.5})
	if w.Fate == "late" {
		o.Invalidate("the tide was late")
	}
	return o, nil
}

const wavesFile = `
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

// harbour returns a library with the scenario. With files, the library also has these files.
func harbour(t *testing.T, files map[string]string) (*Library, error) {
	t.Helper()
	folder := fstest.MapFS{}
	for name, text := range files {
		folder[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return NewLibrary(Collection{folder, map[string]Scenario{"test/waves": Define(waves{Wind: "none", Frames: 100},
		waveQuantities, runWaves)}})
}

// sea returns the experiment of wavesFile.
func sea(t *testing.T) *Experiment {
	t.Helper()
	l, err := harbour(t, map[string]string{"waves.yaml": wavesFile})
	if err != nil {
		t.Fatal(err)
	}
	e, err := l.Find("waves")
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// parse parses a file beside the scenario.
func parse(t *testing.T, text string) (*Experiment, error) {
	t.Helper()
	l, err := harbour(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	return l.Parse([]byte(text))
}
