// Package experiment repeats experiments and reports their results with confidence intervals, beside the printed
// figures of a paper.
//
// An experiment is a file in YAML: the name of a scenario, a matrix of parameters, the plots, and the paper's figures.
// A scenario is a function in Go that runs one cell of the matrix once and returns figures. Scenarios and their files
// are in a package that exports a Collection:
//
//	//go:embed *.yaml
//	var files embed.FS
//
//	// Collection returns the experiments of this package.
//	func Collection() experiment.Collection {
//		return experiment.Collection{Files: files, Scenarios: map[string]experiment.Scenario{
//			"paper002/codec": experiment.Define(defaultCoding(), quantities, runCoding),
//		}}
//	}
//
//	// coding holds the parameters: keys of parameters and matrix in the file.
//	// Unknown keys are errors when the file is read.
//	type coding struct {
//		Level   int           `yaml:"level"`
//		Threads int           `yaml:"threads"`
//		Delay   time.Duration `yaml:"delay"`
//	}
//
//	// Validate is optional; it is called for every cell when the file is read.
//	func (c coding) Validate() error { … }
//
//	func runCoding(ctx context.Context, c coding, s experiment.Settings) (*experiment.Outcome, error) {
//		outcome := experiment.NewOutcome()
//		… measure for s.Duration …
//		// One value per frame, in order. The figure encode is the mean of the values;
//		// a single iteration has an interval from the values.
//		outcome.Sample("encode", encodeTimes)
//		outcome.Set("size", megabytes) // one number for the whole iteration
//		outcome.Series("latency over time", "s", "ms", points)
//		outcome.Judge(experiment.Pace{Wanted: wanted, Done: done, DroppedByCPU: dropped, Busy: busy})
//		return outcome, nil
//	}
//
// An iteration is valid, invalid (the measurement was disturbed, for instance because a link forwarded too late),
// cpu-bound (the machine could not do the work in real time; the report marks its figures), skipped (the machine lacks
// a requirement, with the reason) or failed (an error was returned). The report omits none of them. The statistics of a
// cell are over its valid iterations, or over its cpu-bound ones if there are no valid ones.
//
// A Run belongs to the goroutine that calls it.
package experiment
