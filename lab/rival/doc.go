// Package rival runs flows that compete with the media for a bottleneck: Prague over UDP, and TCP by iperf3.
//
// A Sender is an endless Prague transfer over a UDP socket, with the congestion control of netem.Prague. A Sink
// acknowledges the segments of any number of Senders, each with the codepoint with which the segment arrived. Both own
// their socket. Their sockets belong to the network namespace of the thread that opens them, so that an emulated
// network can have them on its hosts. TCP with the kernel's Cubic, and UDP without congestion control, run in processes
// of iperf3.
package rival
