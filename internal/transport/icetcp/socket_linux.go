package icetcp

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// unsentBytes bounds the bytes that the system accepts and has not sent yet (TCP_NOTSENT_LOWAT): 2.6 ms at 100
	// Mbit/s, 26 ms at 10. The bound does not apply to bytes in flight, so it costs no throughput.
	unsentBytes = 32 << 10
	// longestRepeat is the maximum retransmission timeout, in milliseconds. The system doubles the timeout with each
	// repetition, up to two minutes: after an outage of 5 s nothing would arrive for 2 s more. One second is the least
	// value that the system accepts (since Linux 6.15; older kernels ignore the option).
	longestRepeat = 1000
)

// tune limits the unsent bytes of a connection and its retransmission timeout. Options that the system does not support
// are ignored.
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
