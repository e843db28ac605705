package fidelity

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

const (
	stampWait   = 20 * time.Millisecond // time that a packet stays in a socket before it is read
	stampTrials = 200
)

// keepStamping makes the kernel stamp packets on arrival while the returned socket is open. The kernel starts stamping
// some time after the first socket has requested it. Until then the kernel reports the time at which a packet was read.
func keepStamping(ctx context.Context) (fd int, err error) {
	if fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return -1, fmt.Errorf("socket: %w", err)
	}
	defer func() {
		if err != nil {
			_ = unix.Close(fd)
		}
	}()
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
		return -1, fmt.Errorf("timestamps: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return -1, fmt.Errorf("socket: %w", err)
	}
	self, err := unix.Getsockname(fd)
	if err != nil {
		return -1, fmt.Errorf("socket: %w", err)
	}
	control := make([]byte, 256)
	for range stampTrials {
		if err := errors.Join(ctx.Err(), unix.Sendto(fd, []byte{0}, 0, self)); err != nil {
			return -1, err
		}
		time.Sleep(stampWait)
		_, count, _, _, err := unix.Recvmsg(fd, make([]byte, 1), control, unix.MSG_DONTWAIT)
		if err != nil {
			return -1, fmt.Errorf("receive: %w", err)
		}
		var a arrival
		if err := a.read(control[:count]); err != nil {
			return -1, err
		}
		if clockNow(unix.CLOCK_REALTIME)-a.at > int64(stampWait/2) {
			return fd, nil
		}
	}
	return -1, fmt.Errorf("%w: expected the time of arrival, got the time of reading", errStamp)
}
