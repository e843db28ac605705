// Package interop measures what is claimed of clients that others have made: VR2Gather's peer and connector, the Unity package, the C library. What stands for
// them is part of the tests of the source tree, which no program may import. So each check runs tests there, by the Go command and without the race
// detector, and reads the figures that they log. A check measures on the goroutine that calls Run.
package interop
