// Package daemon runs an edge as a process: the edge itself, the socket for commands on the host, the listener of the
// metrics, and the connection to a controller. It also carries out orders with a time limit.
//
// A Daemon belongs to the goroutine of Run. Orders arrive from the goroutines of the socket and of the controller; the
// mutex of leases guards the limits.
package daemon
