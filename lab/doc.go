// Package lab measures the claims of volsfu: a Check measures one claim, a Report collects the lines of several checks,
// and a Program is a process that a check starts and watches.
//
// The laboratory is a Go module of its own, so that the server does not depend on the libraries for plots and profiles.
// Command vollab runs it. The packages below this one are, by subject:
//
//   - check runs the checks of a collection, each in a process of its own. The checks are in firstlight, hotpath,
//     control, adaptation, interop, pipeline, layers, hardening and viewing; suite makes checks of tests.
//   - experiment repeats experiments of papers and reports their figures. carriage is the client that all compared
//     transports share, and baseline has the transports.
//   - topology emulates networks between processes, and link is its command. rival has flows that compete there.
//   - messages measures the delay of data messages between two participants.
//   - direct sends point clouds to one viewer without a server. imagediff compares received with captured pictures, and
//     codecbench compares codecs.
//
// Checks run on the goroutine that calls Run.
package lab
