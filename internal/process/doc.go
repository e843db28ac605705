// Package process sets up the process of a server: its scheduling priority and its garbage collection. It also reads
// the processor time of the process. It has neither state nor goroutines.
package process

// LowestNice is the lowest niceness (POSIX's nice(2)): a lower niceness is a larger share of a contended processor. The
// default is 0.
const LowestNice = -20
