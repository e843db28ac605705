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

// watched is a socket that Go's poller hears of only when there is something to receive.
//
// Package net has its poller told of room in the send buffer, too: that is each time a packet has left the host, which wakes the thread that waits for the next datagrams for nothing. Here
// an epoll of its own watches the socket, and Go's poller that epoll. It is never read, since the kernel asks the socket whether it is ready; and no wake-up is lost, since nobody waits
// who has not found the socket empty.
type watched struct {
	socket int
	epoll  *os.File
	// raw waits for the socket and keeps it open meanwhile. It gives functions the epoll's descriptor.
	raw syscall.RawConn
}

// watchable tells whether the kernel (fs/eventpoll.c) tells an epoll once of each thing that another one becomes ready for. Before 5.5 it repeats itself as long as something is there; 5.5 and 5.6 leave out
// what comes while they look.
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

// watch takes over the socket of a connection, which it closes only where there is no error.
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
	// The socket stays open, and what else could go wrong with it.
	_ = conn.Close()
	return w, nil
}

// duplicate gives a connection's socket another descriptor.
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

// newEpoll makes an epoll that Go's poller waits for, and that is ready when the socket can be read or has an error.
func newEpoll(socket int) (*os.File, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	err = os.NewSyscallError("epoll_ctl", unix.EpollCtl(fd, unix.EPOLL_CTL_ADD, socket, &unix.EpollEvent{Events: unix.EPOLLIN}))
	if err == nil {
		// Only then does package os wait by the poller.
		err = os.NewSyscallError("fcntl", unix.SetNonblock(fd, true))
	}
	epoll := os.NewFile(uintptr(fd), "epoll")
	if err == nil {
		// Fails where the poller does not take it.
		err = epoll.SetReadDeadline(time.Time{})
	}
	if err != nil {
		return nil, errors.Join(err, epoll.Close())
	}
	return epoll, nil
}

// Close ends waiting, waits until nobody uses the socket, and closes it.
func (w *watched) Close() error {
	// A second Close ends here, before the descriptor, which is somebody else's by then.
	if err := w.epoll.Close(); err != nil {
		return err
	}
	return os.NewSyscallError("close", unix.Close(w.socket))
}

// unlessClosed names the end of a socket alike, whoever has waited for it: an epoll is a file to package os, whose error for that has no name.
func (s *Socket) unlessClosed(err error) error {
	if s.closed.Load() {
		return net.ErrClosed
	}
	return err
}
