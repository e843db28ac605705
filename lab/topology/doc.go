// Package topology is a network between processes: hosts that are network namespaces of this machine, links with the parameters of internal/netem between them, and
// the paths that packets take over the links.
//
// It owns the form of a topology, as Go values and as YAML, the addresses of hosts, the commands that run in them, and what the network says of itself: statistics, and whether it was
// in time. Packets are moved by internal/netem/router, in real time, on a thread of its own. A Network's methods may be called from any goroutine.
//
// A network takes root. Without it there are the links of internal/netem inside one process, with the same queues.
package topology
