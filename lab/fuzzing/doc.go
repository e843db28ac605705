// Package fuzzing runs the fuzz tests of all parsers of network bytes, from a checkout, and counts the inputs.
//
// Counts are kept in a file, so that a run continues the previous ones. The tests get equal times: the next package is
// the one whose tests have had the least. A run belongs to the goroutine that calls Run.
package fuzzing
