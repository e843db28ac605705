// Package duplication checks the claims of packet duplication on several paths (vollab check duplication).
//
// A pair of edges is two processes of the program volnet, on hosts that are network namespaces. A check creates the
// namespaces and removes them; no interface of the host is touched. Paths are links of package topology if a claim is
// about delays and losses, and virtual Ethernet devices (veth) if a claim is about the cost of a packet.
//
// The checks need root, and a kernel that can attach BPF programs. Elsewhere they are skipped with the reason.
//
// A measurement belongs to the goroutine that calls Run.
package duplication
