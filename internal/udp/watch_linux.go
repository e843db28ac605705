package udp

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// watched is a socket that wakes Go's poller only if there is something to receive.
//
// Package net registers its poller also for space in the send buffer: each packet that leaves the host would wake the
// thread that waits for the next datagrams. Here an epoll of its own watches the socket, and Go's poller watches that
// epoll. The epoll is never read, because the kernel asks the socket whether it is ready. No wake-up is lost, because a
// goroutine waits only after it found the socket empty.
type watched struct {
	socket int
	epoll  *os.File
	// raw waits for the socket and keeps it open meanwhile. It passes the epoll's descriptor to functions.
	raw syscall.RawConn
}

// watchable reports whether the kernel (fs/eventpoll.c) notifies an epoll once of each event of a nested one. Before
// 5.5 it repeats the notification as long as the event lasts; 5.5 and 5.6 miss events that occur during the check.
var watchable = sync.OnceValue(func() bool {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return false
	}
	var major, minor int
	if _, err := fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &major, &minor); err != nil {
		return false
	}
	return major > 5 || major == 5 && minor >= 7
})

// watch takes over the socket of a connection. It closes the connection only if there is no error.
func watch(conn *net.UDPConn) (*watched, error) {
	socket, err := duplicate(conn)
	if err != nil {
		return nil, err
	}
	epoll, err := newEpoll(socket)
	if err != nil {
		return nil, errors.Join(err, unix.Close(socket))
	}
	w := &watched{socket: socket, epoll: epoll}
	if w.raw, err = epoll.SyscallConn(); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	// The socket stays open; other errors of closing do not matter.
	_ = conn.Close()
	return w, nil
}

// duplicate returns another descriptor of a connection's socket.
func duplicate(conn *net.UDPConn) (int, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var socket int
	var failure error
	err = raw.Control(func(fd uintptr) { socket, failure = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) })
	return socket, errors.Join(err, os.NewSyscallError("fcntl", failure))
}

// newEpoll returns an epoll for Go's poller, which is ready when the socket can be read or has an error.
func newEpoll(socket int) (*os.File, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	err = os.NewSyscallError("epoll_ctl", unix.EpollCtl(fd, unix.EPOLL_CTL_ADD, socket,
		&unix.EpollEvent{Events: unix.EPOLLIN}))
	if err == nil {
		// Only then does package os use the poller.
		err = os.NewSyscallError("fcntl", unix.SetNonblock(fd, true))
	}
	epoll := os.NewFile(uintptr(fd), "epoll")
	if err == nil {
		// Fails if the poller does not accept the descriptor.
		err = epoll.SetReadDeadline(time.Time{})
	}
	if err != nil {
		return nil, errors.Join(err, epoll.Close())
	}
	return epoll, nil
}

// Close ends waiting calls, waits until the socket is unused, and closes it.
func (w *watched) Close() error {
	// A second Close returns here, before the descriptor, which may belong to another file by then.
	if err := w.epoll.Close(); err != nil {
		return err
	}
	return os.NewSyscallError("close", unix.Close(w.socket))
}

// unlessClosed returns net.ErrClosed if the socket is closed: package os has another error for a closed epoll.
func (s *Socket) unlessClosed(err error) error {
	if s.closed.Load() {
		return net.ErrClosed
	}
	return err
}
