package lab

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// EnlargeBuffers asks for socket buffers of so many bytes, beyond the system's limits where the process may (CAP_NET_ADMIN).
func EnlargeBuffers(conn syscall.Conn, bytes int) {
	control(conn, func(fd int) {
		for _, option := range [][2]int{{unix.SO_RCVBUFFORCE, unix.SO_RCVBUF}, {unix.SO_SNDBUFFORCE, unix.SO_SNDBUF}} {
			if unix.SetsockoptInt(fd, unix.SOL_SOCKET, option[0], bytes) != nil {
				_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, option[1], bytes)
			}
		}
	})
}

// memoryInfo is what SO_MEMINFO fills: nine numbers of 32 bits, of which the last counts the datagrams that did not fit the receive buffer.
type memoryInfo [9]uint32

const memoryInfoDrops = 8

// ReceiveDrops is the number of datagrams that the kernel dropped at a socket since it was opened, 0 where the system does not tell.
func ReceiveDrops(conn syscall.Conn) int {
	var info memoryInfo
	control(conn, func(fd int) {
		size := uint32(unsafe.Sizeof(info))
		_, _, _ = unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
			uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	})
	return int(info[memoryInfoDrops])
}

// control runs a function on the descriptor of a socket, unless it is closed.
func control(conn syscall.Conn, f func(fd int)) {
	if raw, err := conn.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { f(int(fd)) })
	}
}
