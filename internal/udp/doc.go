// Package udp owns the UDP sockets of one port and the system calls on them. On Linux one call transfers many datagrams
// (recvmmsg, sendmmsg), and datagrams of one size between the same two addresses pass the kernel as one run
// (UDP_SEGMENT for sending, UDP_GRO for receiving). On other systems, or if the kernel lacks these features, every
// datagram takes a call of its own; callers see no difference except the cost. The package does not interpret
// datagrams.
//
// A Port and its Sockets may be used from any goroutine, except Receive, which belongs to one goroutine per socket.
// That goroutine also owns its Inbox. The package starts no goroutines.
package udp
