package udp

import (
	"math"
	"net"
	"unsafe"

	"golang.org/x/sys/unix"
)

// EnlargeBuffers requests buffer sizes for a socket, in bytes, beyond the system's limits if the process has
// CAP_NET_ADMIN, and returns the granted sizes. 0 requests no change; a result of 0 is unknown.
func EnlargeBuffers(conn *net.UDPConn, receive, send int) (received, sent int) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, 0
	}
	_ = raw.Control(func(fd uintptr) { // fails after the socket is closed
		received = enlarge(int(fd), unix.SO_RCVBUFFORCE, unix.SO_RCVBUF, receive)
		sent = enlarge(int(fd), unix.SO_SNDBUFFORCE, unix.SO_SNDBUF, send)
	})
	return received, sent
}

// enlarge requests a buffer size, beyond the system's limit if permitted, and returns the granted size in bytes. The
// kernel doubles the value for its own bookkeeping; the result is not doubled.
func enlarge(fd, forced, plain, bytes int) int {
	if bytes > 0 {
		bytes = min(bytes, math.MaxInt32)
		if unix.SetsockoptInt(fd, unix.SOL_SOCKET, forced, bytes) != nil {
			_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, plain, bytes)
		}
	}
	doubled, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, plain)
	if err != nil {
		return 0
	}
	return doubled / 2
}

// memoryInfo is the result of SO_MEMINFO: nine 32-bit numbers. The last counts the datagrams dropped at the socket
// since it was opened, for any reason: a full buffer, a wrong checksum, a filter. SO_RXQ_OVFL has the same number in a
// control message, but only with a datagram that arrives after the drops.
type memoryInfo [9]uint32

const memoryInfoDrops = 8

// ReceiveDrops returns the number of datagrams that the kernel dropped at a socket since it was opened, modulo 2^32,
// and whether the number is known.
func ReceiveDrops(conn *net.UDPConn) (drops uint32, known bool) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, false
	}
	return receiveDrops(raw)
}

func receiveDrops(c controller) (uint32, bool) {
	var info memoryInfo
	known := false
	_ = c.Control(func(fd uintptr) { // fails after the socket is closed
		size := uint32(unsafe.Sizeof(info))
		_, _, err := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_MEMINFO,
			uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
		known = err == 0 && size == uint32(unsafe.Sizeof(info))
	})
	return info[memoryInfoDrops], known
}

// receiveDrops returns false if the socket is a connection passed to Attach.
func (s *Socket) receiveDrops() (uint32, bool) {
	if s.kernel.raw == nil {
		return 0, false
	}
	return receiveDrops(&s.kernel)
}
