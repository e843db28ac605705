// Package cluster checks the claims of rooms over several nodes (vollab check cluster).
//
// Each measurement runs servers in network namespaces of its own. The nodes share two networks: one for clients, which
// run in this process, and one for routes and trunks. So that the clients reach the first network, this process moves
// into a network namespace of its own: it starts its program again there (enterOwnNetwork). Namespaces and devices end
// with the process. The measurements need Linux and root, and are skipped elsewhere with the reason.
//
// A measurement belongs to the goroutine that calls Run.
package cluster
