// Package cast runs the processes of an iteration: peers of the transports (vollab peer), each a process of its own, in the namespaces of an emulated network or side by side
// on this machine. It tells when frames flow, measures what the processes and the machine use in a window of time, and reads the records that the peers leave.
//
// A Cast belongs to the goroutine that opened it.
package cast
