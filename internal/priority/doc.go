// Package priority has the system's scheduler run a program before others that are busy, as players and recorders of sound do: a packet that waits for a processor is late, and what does not
// fit into a socket's buffer meanwhile is lost. It has neither state nor goroutines.
package priority

// Lowest bounds a niceness (POSIX's nice(2)): the lower it is, the more of a processor that others want, too, a program gets. Programs have 0 unless they are told otherwise.
const Lowest = -20
