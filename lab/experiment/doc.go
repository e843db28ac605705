// Package experiment runs experiments over and over and says what came of them: with which uncertainty, and beside what a paper has printed.
//
// An experiment is a file in YAML: the name of a scenario, a matrix of parameters, what to plot, and the paper's figures. A scenario is a function in Go that runs
// one cell of the matrix once and returns figures. Scenarios and their files stand together in a package that exports a Collection:
//
//	//go:embed *.yaml
//	var files embed.FS
//
//	// Collection are the experiments of this package.
//	func Collection() experiment.Collection {
//		return experiment.Collection{Files: files, Scenarios: map[string]experiment.Scenario{
//			"paper002/codec": experiment.Define(defaultCoding(), quantities, runCoding),
//		}}
//	}
//
//	// coding are the parameters: keys of parameters and matrix in the file. Unknown keys are errors when the file is read.
//	type coding struct {
//		Level   int           `yaml:"level"`
//		Threads int           `yaml:"threads"`
//		Delay   time.Duration `yaml:"delay"`
//	}
//
//	// Validate is optional; it is asked of every cell when the file is read.
//	func (c coding) Validate() error { … }
//
//	func runCoding(ctx context.Context, c coding, s experiment.Settings) (*experiment.Outcome, error) {
//		outcome := experiment.NewOutcome()
//		… measure for s.Duration …
//		outcome.Sample("encode", encodeTimes)  // one value per frame, in order: gives the figure encode, and its interval where there is one iteration only
//		outcome.Set("size", megabytes)         // a figure that is one number of the whole iteration
//		outcome.Series("latency over time", "s", "ms", points)
//		outcome.Judge(experiment.Pace{Wanted: wanted, Done: done, DroppedByCPU: dropped, Busy: busy})
//		return outcome, nil
//	}
//
// An iteration is valid, invalid (the measuring itself was disturbed, for instance a link that forwarded too late), cpu-bound (the machine could not do the work in
// real time; its figures stand in the report, marked), skipped (something is missing here, with the reason) or failed (an error came back). None is left out of the
// report; statistics of a cell are over its valid iterations, or where there are none over its cpu-bound ones.
//
// A Run belongs to the goroutine that calls it.
package experiment
