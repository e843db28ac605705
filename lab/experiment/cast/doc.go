// Package cast runs the processes of an iteration. The processes are peers of the transports (vollab peer), in the
// namespaces of an emulated network or side by side on this machine. Package cast waits until frames arrive, measures
// the usage of the processes and the machine in a window of time, and reads the records of the peers.
//
// A Cast belongs to the goroutine that opened it.
package cast
