// Package topology is a network between processes: hosts that are network namespaces of this machine, links between the
// hosts with the parameters of internal/netem, and the paths of packets over the links.
//
// The package owns the form of a topology, as Go values and as YAML, the addresses of hosts, the commands that run on
// hosts, and the network's report: statistics, and whether the network was in time. internal/netem/router moves packets
// in real time, on its own thread. A Network's methods may be called from any goroutine.
//
// A network requires root. Without root, the links of internal/netem are available inside one process, with the same
// queues.
package topology
