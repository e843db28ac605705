package experiment_test

import (
	"context"
	"fmt"
	"os"
	"testing/fstest"
	"time"

	"github.com/volsfu/volsfu/lab/experiment"
)

func ExampleDefine() {
	// coding holds the parameters of a cell: keys of parameters and matrix.
	type coding struct {
		Level int `yaml:"level"`
	}
	quantities := []experiment.Quantity{{Name: "encode", Unit: "ms", Label: "encoding"}}
	run := func(ctx context.Context, c coding, s experiment.Settings) (*experiment.Outcome, error) {
		outcome := experiment.NewOutcome()
		times, err := encode(ctx, s.Duration, c.Level)
		outcome.Sample("encode", times) // one value per frame, in the order of time
		return outcome, err
	}
	// A collection holds the experiments of a package: its embedded files and its scenarios.
	collection := experiment.Collection{Files: files, Scenarios: map[string]experiment.Scenario{
		"mine/coding": experiment.Define(coding{Level: 7}, quantities, run),
	}}

	library, err := experiment.NewLibrary(collection)
	if err != nil {
		fmt.Println(err)
		return
	}
	mine, err := library.Find("mine")
	if err != nil {
		fmt.Println(err)
		return
	}
	folder, err := os.MkdirTemp("", "experiment-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(folder) }()
	result, err := mine.Run(context.Background(), experiment.Options{Short: true, Folder: folder, Shared: folder})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range result.Cells {
		encoding := result.Cells[i].Figure("encode")
		fmt.Printf("%s: %.1f %s\n", result.Cells[i].Name, encoding.Mean, encoding.Unit)
	}
	// Output:
	// level=7: 3.5 ms
	// level=9: 4.5 ms
}

// files stands for the embedded files of a package.
var files = fstest.MapFS{"mine.yaml": {Data: []byte(`
name: mine
title: Encoding by level
scenario: mine/coding
matrix:
  - {level: [7, 9], short: true}
`)}}

// encode stands for the measurement of a scenario: the times of twenty frames, determined by the level.
func encode(_ context.Context, _ time.Duration, level int) ([]float64, error) {
	times := make([]float64, 20)
	for i := range times {
		times[i] = float64(level)/2 + float64(i%2)*0.2 - 0.1
	}
	return times, nil
}
