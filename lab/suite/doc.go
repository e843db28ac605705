// Package suite makes checks of the tests of the source tree: a check runs tests with the Go command, without the race
// detector, and reads the figures that the tests log. A check measures on the goroutine that calls Run.
package suite
