package icetcp

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// unsentBytes is how many bytes the system takes of what it has not sent yet (TCP_NOTSENT_LOWAT): 2.6 ms at 100
	// Mbit/s, 26 ms at 10. What it has sent is as much as the path holds, whatever this says, so that it costs no
	// throughput.
	unsentBytes = 32 << 10
	// longestRepeat is after how long what is not acknowledged is repeated at the latest, in milliseconds. The system
	// doubles that time with each repetition, up to two minutes: after an outage of 5 s nothing would come for 2 s
	// more. A second is the least that it takes (Linux 6.15; those before do as they did).
	longestRepeat = 1000
)

// tune has the system hold little of a connection, and come back soon after an outage. What it does not know of is left
// as it is.
func tune(conn net.Conn) {
	system, ok := conn.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := system.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { // fails once the connection is closed
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsentBytes)
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_RTO_MAX_MS, longestRepeat)
	})
}
