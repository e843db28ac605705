package router

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// In every period, in nanoseconds, the thread has reserved the time promised before all other threads
	// (SCHED_DEADLINE): most of a core, within a millisecond after it is ready. Beside fifteen busy processes on two
	// cores, with 200 Mbit/s of TCP passing, 99.9 % of the packets were usually written within 1 ms of their time, and
	// within 10 ms at worst. A real-time priority (SCHED_FIFO) was as good on average, but had stalls of 40 to 170 ms,
	// perhaps because the kernel's server for ordinary processes precedes it; an ordinary thread with negative niceness
	// needed 10 to 40 ms, and in 5 % of the cases several.
	promised = 900_000
	period   = 1_000_000
	// niceness raises the share of the thread relative to the processes of its session if SCHED_DEADLINE is not
	// permitted.
	niceness = -15
	// slice is the time slice that the thread requests, in nanoseconds, the minimum that the scheduler grants: a thread
	// with a short slice is scheduled soon (EEVDF, Linux 6.12 and newer).
	slice = 100_000
)

// spareProcessors is the number of additional threads, beyond the processors, that the Go runtime may run while there
// is a router. A thread that returns from a system call needs a place among them, and should not have to wait for one
// whose thread the kernel has preempted.
const spareProcessors = 2

var leaveRoom = sync.OnceFunc(func() {
	if wanted := runtime.NumCPU() + spareProcessors; runtime.GOMAXPROCS(0) < wanted {
		runtime.GOMAXPROCS(wanted)
	}
})

// becomePunctual makes the calling thread wake up in time. Settings that the system refuses are skipped: the thread is
// then later, and counts that.
func becomePunctual() {
	// Otherwise timers of a thread without real-time priority are late by 50 µs, so that several can fire at once.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	attributes := unix.SchedAttr{Size: uint32(unsafe.Sizeof(unix.SchedAttr{})), Flags: unix.SCHED_FLAG_RESET_ON_FORK}
	attributes.Policy, attributes.Runtime, attributes.Deadline, attributes.Period = unix.SCHED_DEADLINE, promised,
		period, period
	if unix.SchedSetAttr(0, &attributes, 0) == nil {
		return
	}
	attributes.Policy, attributes.Nice, attributes.Runtime, attributes.Deadline, attributes.Period = unix.SCHED_NORMAL,
		niceness, slice, 0, 0
	if unix.SchedSetAttr(0, &attributes, 0) != nil {
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, niceness)
	}
}

// takePriority sets a real-time priority (SCHED_FIFO) of the calling thread, and reports whether the kernel permits it.
func takePriority(priority uint32) bool {
	return unix.SchedSetAttr(0, &unix.SchedAttr{
		Size: uint32(unsafe.Sizeof(unix.SchedAttr{})), Flags: unix.SCHED_FLAG_RESET_ON_FORK, Policy: unix.SCHED_FIFO,
		Priority: priority,
	}, 0) == nil
}

// becomeOrdinary restores the calling thread, which is locked to its goroutine, for other uses. If the system refuses,
// the thread stays locked and ends with the goroutine.
func becomeOrdinary() {
	attributes := unix.SchedAttr{Size: uint32(unsafe.Sizeof(unix.SchedAttr{})), Policy: unix.SCHED_NORMAL}
	// A slack of 0 restores the initial slack of the thread.
	if unix.SchedSetAttr(0, &attributes, 0) == nil && unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0) == nil {
		runtime.UnlockOSThread()
	}
}

// processorTime returns the running time of the calling thread.
func processorTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// runQueue reads the time for which the calling thread has been ready without running.
type runQueue struct {
	file   *os.File
	buffer [64]byte
}

// newRunQueue opens the counters of the calling thread.
func newRunQueue() (*runQueue, error) {
	file, err := os.Open("/proc/thread-self/schedstat")
	if err != nil {
		return nil, fmt.Errorf("counters of the scheduler: %w", err)
	}
	q := &runQueue{file: file}
	if _, err := q.waited(); err != nil {
		_ = file.Close()
		return nil, err
	}
	return q, nil
}

// errCounters is the sentinel of an unexpected format of the scheduler's counters.
var errCounters = errors.New("/proc/thread-self/schedstat: expected three numbers")

// waited returns the time: the second of the three numbers, in nanoseconds.
func (q *runQueue) waited() (time.Duration, error) {
	count, err := transfer(unix.SYS_PREAD64, int(q.file.Fd()), q.buffer[:])
	if err != nil {
		return 0, err
	}
	text := q.buffer[:count]
	for i, c := range text {
		if c == ' ' {
			text = text[i+1:]
			break
		}
	}
	ns := int64(0)
	for _, c := range text {
		if c < '0' || c > '9' {
			if c == ' ' {
				return time.Duration(ns), nil
			}
			break
		}
		ns = ns*10 + int64(c-'0')
	}
	return 0, fmt.Errorf("%w, got %s", errCounters, strconv.Quote(string(q.buffer[:count])))
}

func (q *runQueue) close() { _ = q.file.Close() }
