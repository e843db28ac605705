// Package probe measures the way of single packets below programs: a sender and a receiver of UDP note when they handed a packet over or had it, and the kernel
// (SO_TIMESTAMPING) when it gave the packet to the network device and took it from there; network cards with clocks of their own tell when they sent and received it.
//
// Send and Receive each have a socket of their own, and block the goroutine that calls them. Packets are numbered from 0.
package probe
