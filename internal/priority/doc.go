// Package priority raises the scheduling priority of a program above that of other busy programs, as players and
// recorders of sound do: a packet that waits for a processor is late, and packets that meanwhile exceed a socket's
// buffer are lost. It has neither state nor goroutines.
package priority

// Lowest is the lowest niceness (POSIX's nice(2)): a lower niceness is a larger share of a contended processor. The
// default is 0.
const Lowest = -20
