// Package probe measures the path of single packets below programs. A sender and a receiver of UDP note the times of
// handing over and of receiving a packet, and the kernel (SO_TIMESTAMPING) notes the times of giving the packet to the
// network device and of taking it from there. Network cards with clocks report the times of sending and receiving.
package probe
