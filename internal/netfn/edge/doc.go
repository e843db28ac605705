// Package edge is one end of a pair of edges that copies packets onto several paths. The sender's BPF program puts
// copies of the packets that its rules select onto the paths; the receiver's BPF program passes the first copy. This
// package configures, attaches and supervises both programs: it reads the configuration, pins programs and maps so that
// they outlive the process, keeps the next hops of the paths, exchanges control messages with the other edge, and
// writes the set of paths that package paths decides.
//
// Owners: the mutex of an Edge guards its state. Goroutines of Run read the sockets of the paths, the samples and the
// events of the network, and take the mutex for each message. Status, Set and Detach may be called from any goroutine.
package edge
