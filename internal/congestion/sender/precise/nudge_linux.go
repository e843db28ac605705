package precise

import (
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// nudge is a timer of the kernel in Go's poller. An idle process sleeps in the poller, which runs a goroutine that
// waits for the timer, and checks for due timers of package time whenever it wakes. A busy process checks both anyway.
type nudge struct {
	file *os.File // nil if there is none
	fd   uintptr
	raw  syscall.RawConn
	// expired reads the expirations and reports whether there were any. It is bound once, so that waiting does not
	// allocate.
	expired func(fd uintptr) bool
}

func newNudge() nudge {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nudge{}
	}
	file := os.NewFile(uintptr(fd), "timer")
	// Fails if the poller does not accept the descriptor.
	if file.SetReadDeadline(time.Time{}) != nil {
		_ = file.Close()
		return nudge{}
	}
	raw, err := file.SyscallConn()
	if err != nil {
		_ = file.Close()
		return nudge{}
	}
	count := new(uint64)
	expired := func(fd uintptr) bool {
		_, _, failed := syscall.RawSyscall(unix.SYS_READ, fd, uintptr(unsafe.Pointer(count)), unsafe.Sizeof(*count))
		return failed == 0
	}
	return nudge{file: file, fd: uintptr(fd), raw: raw, expired: expired}
}

// after wakes the poller after d, once, instead of the previous setting. The poller is edge-triggered: it is notified
// of each expiration, whether the descriptor is read or not.
//
// The calls on the timer do not wait, so they are made without informing Go's scheduler, which would cost more than the
// calls.
func (n *nudge) after(d time.Duration) {
	if n.file == nil {
		return
	}
	// 0 would disarm the timer.
	setting := unix.ItimerSpec{Value: unix.NsecToTimespec(max(d, 1).Nanoseconds())}
	_, _, _ = syscall.RawSyscall6(unix.SYS_TIMERFD_SETTIME, n.fd, 0, uintptr(unsafe.Pointer(&setting)), 0, 0, 0)
}

// wait returns when the timer has expired since the last call of after. There must be a timer.
func (n *nudge) wait() { _ = n.raw.Read(n.expired) }

// works reports whether there is a timer.
func (n *nudge) works() bool { return n.file != nil }

func (n *nudge) close() {
	if n.file != nil {
		_ = n.file.Close()
	}
}
