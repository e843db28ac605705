package precise

import (
	"math"
	"os"
	"sync/atomic"
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
	// due is the set time, since begun, or never. expired reports whether it has passed, and then sets it to never. It
	// is bound once, so that waiting does not allocate.
	due     *atomic.Int64
	begun   time.Time
	expired func(uintptr) bool
}

// never is the time of a timer that is not set.
const never = int64(math.MaxInt64)

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
	n := nudge{file: file, fd: uintptr(fd), raw: raw, due: new(atomic.Int64), begun: time.Now()}
	n.due.Store(never)
	due, begun := n.due, n.begun
	// The clock, and not the descriptor, tells the expiration of this setting from that of an earlier one: a call of
	// the system less.
	n.expired = func(uintptr) bool {
		at := due.Load()
		return int64(time.Since(begun)) >= at && due.CompareAndSwap(at, never)
	}
	return n
}

// after wakes the poller after d, once, instead of the previous setting. The poller is edge-triggered: it is notified
// of each expiration, although the descriptor is never read.
//
// The calls on the timer do not wait, so they are made without informing Go's scheduler, which would cost more than the
// calls.
func (n *nudge) after(d time.Duration) {
	if n.file == nil {
		return
	}
	// The kernel counts d from a later time, so that due has passed when the timer expires.
	n.due.Store(int64(time.Since(n.begun) + max(d, 0)))
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
