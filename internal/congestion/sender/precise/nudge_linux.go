package precise

import (
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// nudge wakes Go's poller at a given time. An idle process sleeps in the poller, which checks for due timers whenever
// it wakes; no goroutine waits for the descriptor itself. A busy process checks for due timers anyway.
type nudge struct {
	file *os.File // nil if there is none
	fd   uintptr
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
	return nudge{file: file, fd: uintptr(fd)}
}

// after wakes the poller after d, once, instead of the previous setting. The poller is edge-triggered: it is notified
// of each expiration, although the descriptor is never read.
//
// The call does not wait, so it is made without informing Go's scheduler, which would cost more than the call.
func (n nudge) after(d time.Duration) {
	if n.file == nil {
		return
	}
	// 0 would disarm the timer.
	setting := unix.ItimerSpec{Value: unix.NsecToTimespec(max(d, 1).Nanoseconds())}
	_, _, _ = syscall.RawSyscall6(unix.SYS_TIMERFD_SETTIME, n.fd, 0, uintptr(unsafe.Pointer(&setting)), 0, 0, 0)
}

// works reports whether there is a timer.
func (n nudge) works() bool { return n.file != nil }

func (n nudge) close() {
	if n.file != nil {
		_ = n.file.Close()
	}
}
