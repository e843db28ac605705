// Package probe measures the path of single packets below programs. A sender and a receiver of UDP record the times of
// sending and of receiving a packet. The kernel (SO_TIMESTAMPING) records the times at which it passes the packet to
// the network device and receives it from the device. Network cards with clocks report the times of transmission and
// reception.
package probe
