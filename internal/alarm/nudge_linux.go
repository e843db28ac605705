package alarm

import (
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// nudge wakes Go's poller at an instant. A process that sleeps does so in the poller, which looks for timers that are due whenever it wakes; nobody waits for the descriptor itself. One
// that does not sleep looks for them anyway.
type nudge struct {
	file *os.File // nil where there is none
	fd   uintptr
}

func newNudge() nudge {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nudge{}
	}
	file := os.NewFile(uintptr(fd), "timer")
	// Fails where the poller does not take it.
	if file.SetReadDeadline(time.Time{}) != nil {
		_ = file.Close()
		return nudge{}
	}
	return nudge{file: file, fd: uintptr(fd)}
}

// after wakes the poller after d, once, instead of what was set before. The poller hears of each time that it goes off, though nobody ever reads the descriptor: it is told of changes.
//
// The call does not wait, so Go's scheduler is not told of it, which would cost more than the call.
func (n nudge) after(d time.Duration) {
	if n.file == nil {
		return
	}
	// 0 would mean never.
	setting := unix.ItimerSpec{Value: unix.NsecToTimespec(max(d, 1).Nanoseconds())}
	_, _, _ = syscall.RawSyscall6(unix.SYS_TIMERFD_SETTIME, n.fd, 0, uintptr(unsafe.Pointer(&setting)), 0, 0, 0)
}

// works tells whether there is one.
func (n nudge) works() bool { return n.file != nil }

func (n nudge) close() {
	if n.file != nil {
		_ = n.file.Close()
	}
}
