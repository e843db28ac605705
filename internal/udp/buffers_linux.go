package udp

import (
	"math"
	"net"
	"unsafe"

	"golang.org/x/sys/unix"
)

// EnlargeBuffers asks for buffers of a socket, in bytes, beyond the system's limits where the process may (CAP_NET_ADMIN), and returns what they are; 0 asks for none,
// and says that it is unknown.
func EnlargeBuffers(conn *net.UDPConn, receive, send int) (received, sent int) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, 0
	}
	_ = raw.Control(func(fd uintptr) { // fails once the socket is closed
		received = enlarge(int(fd), unix.SO_RCVBUFFORCE, unix.SO_RCVBUF, receive)
		sent = enlarge(int(fd), unix.SO_SNDBUFFORCE, unix.SO_SNDBUF, send)
	})
	return received, sent
}

// enlarge asks for a buffer, beyond the system's limit where the process may, and returns what it is in bytes. The kernel doubles what is asked, for its own
// bookkeeping; the doubled number is not returned.
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

// memoryInfo is what SO_MEMINFO fills: nine numbers of 32 bits, of which the last counts the datagrams that were dropped at the socket since it was opened, for
// whatever reason: a full buffer, a wrong checksum, a filter. SO_RXQ_OVFL tells the same number in a control message, with each datagram once any was dropped, and
// not before one comes after those.
type memoryInfo [9]uint32

const memoryInfoDrops = 8

// ReceiveDrops is the number of datagrams that the kernel dropped at a socket since it was opened, modulo 2^32, and whether it told.
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
	_ = c.Control(func(fd uintptr) { // fails once the socket is closed
		size := uint32(unsafe.Sizeof(info))
		_, _, err := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_MEMINFO,
			uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
		known = err == 0 && size == uint32(unsafe.Sizeof(info))
	})
	return info[memoryInfoDrops], known
}

// receiveDrops is nothing where the socket is another's connection.
func (s *Socket) receiveDrops() (uint32, bool) {
	if s.kernel.raw == nil {
		return 0, false
	}
	return receiveDrops(&s.kernel)
}
