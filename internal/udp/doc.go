// Package udp owns the UDP sockets of one port and the system calls on them: on Linux many datagrams pass per call (recvmmsg, sendmmsg), and datagrams
// of one size between the same two addresses pass the kernel as one run (UDP_SEGMENT when sending, UDP_GRO when receiving). Elsewhere, or where the kernel
// offers none of that, every datagram is a call of its own, and callers see no difference but the cost. The package knows nothing of what datagrams mean.
//
// A Port and its Sockets may be used from any goroutine, but for Receive, which is one goroutine's per socket. That goroutine owns its Inbox, too. Nothing here
// starts goroutines.
package udp
