package transport

import (
	"errors"
	"net"
	"unsafe"

	"golang.org/x/sys/unix"
)

// enlargeBuffers asks for socket buffers of the given sizes, beyond the system's limits where the process may (CAP_NET_ADMIN), and returns
// the receive buffer that it got, in bytes. The kernel doubles what is asked, for its own bookkeeping; the doubled number is not returned.
func enlargeBuffers(conn *net.UDPConn, receive, send int) int {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0
	}
	got := 0
	_ = raw.Control(func(fd uintptr) {
		set := func(forced, plain, size int) {
			if unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, forced, size) != nil {
				_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, plain, size)
			}
		}
		set(unix.SO_RCVBUFFORCE, unix.SO_RCVBUF, receive)
		set(unix.SO_SNDBUFFORCE, unix.SO_SNDBUF, send)
		if doubled, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF); err == nil {
			got = doubled / 2
		}
	})
	return got
}

// memoryInfo is what SO_MEMINFO fills: nine numbers of 32 bits, of which the last counts the datagrams that did not fit the receive buffer.
type memoryInfo [9]uint32

const memoryInfoDrops = 8

// receiveDrops is the number of datagrams that the kernel dropped at the socket since it was opened, modulo 2^32.
func receiveDrops(conn net.PacketConn) uint32 {
	udp, ok := conn.(*net.UDPConn)
	if !ok {
		return 0
	}
	raw, err := udp.SyscallConn()
	if err != nil {
		return 0
	}
	var info memoryInfo
	_ = raw.Control(func(fd uintptr) {
		size := uint32(unsafe.Sizeof(info))
		_, _, _ = unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_MEMINFO,
			uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	})
	return info[memoryInfoDrops]
}

// isClosed tells an error of closing twice from others.
func isClosed(err error) bool { return errors.Is(err, net.ErrClosed) }
