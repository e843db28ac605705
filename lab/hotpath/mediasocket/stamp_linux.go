package mediasocket

import (
	"fmt"
	"net/netip"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// stampSpace is the size of the control message with the arrival time of a datagram.
var stampSpace = unix.CmsgSpace(int(unsafe.Sizeof(unix.Timespec{})))

// stampArrivals makes the kernel report the arrival times of datagrams.
func stampArrivals(conn syscall.Conn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return fmt.Errorf("stamp arrivals at a socket: %w", err)
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return fmt.Errorf("stamp arrivals at a socket: %w", err)
	}
	return nil
}

// readStamped reads a datagram and its arrival time: that of the kernel if it is known, otherwise the present time.
func (s *Socket) readStamped(buffer []byte) (n int, from netip.AddrPort, at time.Time, err error) {
	var control [64]byte
	n, length, _, from, err := s.ReadMsgUDPAddrPort(buffer, control[:stampSpace])
	at = time.Now()
	if header := (*unix.Cmsghdr)(unsafe.Pointer(&control[0])); err == nil && length == stampSpace &&
		header.Level == unix.SOL_SOCKET && header.Type == unix.SO_TIMESTAMPNS {
		stamp := (*unix.Timespec)(unsafe.Pointer(&control[unix.CmsgLen(0)]))
		at = time.Unix(stamp.Unix())
	}
	return n, from, at, err
}
