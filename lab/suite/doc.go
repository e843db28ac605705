// Package suite makes checks of the tests of the source tree: it runs them with the Go command, without the race
// detector, and reads the figures that they log. A check measures on the goroutine that calls Run.
package suite
