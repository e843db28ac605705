package fuzzing

import "time"

// Options configure a run.
type Options struct {
	// Inputs is the number of inputs of all runs together at which the run ends.
	Inputs int64
	// Slice is the time for which each test of a package runs before the next package.
	Slice time.Duration
	// Time bounds the run; 0 is no bound.
	Time time.Duration
	// State is the file with the counts of previous runs, which is created if necessary. Without a file, a run begins
	// with no inputs.
	State string
	// Folder is the start of the search for the checkout, from there upwards; empty is the working directory.
	Folder string
}

// DefaultOptions returns the options of the claim: 10⁹ inputs.
func DefaultOptions() Options { return Options{Inputs: 1_000_000_000, Slice: time.Minute} }
