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
	// promised in every period, in nanoseconds, is what the thread is promised before everybody else (SCHED_DEADLINE): most of a core, a millisecond after it asks at the latest. Beside
	// fifteen busy processes on two cores, with 200 Mbit/s of TCP passing, 99.9 % of the packets were written within 1 ms of their time mostly, and within 10 ms at worst. A real-time priority
	// (SCHED_FIFO) did as well on average, but had stalls of 40 to 170 ms, perhaps because the kernel's server for ordinary processes comes before it; a favoured ordinary thread needed 10
	// to 40 ms, and in 5 % of the cases several.
	promised = 900_000
	period   = 1_000_000
	// niceness gives the thread a larger share than the processes of its own session where it may not have that.
	niceness = -15
	// slice is what the thread asks the scheduler for at a time, in nanoseconds, the least that it grants: who wants little is let in soon (EEVDF, Linux 6.12 and newer).
	slice = 100_000
)

// spareProcessors is how many more threads than processors the Go runtime may have at work while there is a router. A thread that comes back from a system call has to find a place among
// them, and should not have to wait for one whose thread the kernel has put aside.
const spareProcessors = 2

var leaveRoom = sync.OnceFunc(func() {
	if wanted := runtime.NumCPU() + spareProcessors; runtime.GOMAXPROCS(0) < wanted {
		runtime.GOMAXPROCS(wanted)
	}
})

// becomePunctual makes the calling thread one that wakes up in time. What the system refuses is left out: the thread is later then, and counts that.
func becomePunctual() {
	// Without, timers of a thread that has no real-time priority are late by 50 µs, so that several can fire at once.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	attributes := unix.SchedAttr{Size: uint32(unsafe.Sizeof(unix.SchedAttr{})), Flags: unix.SCHED_FLAG_RESET_ON_FORK}
	attributes.Policy, attributes.Runtime, attributes.Deadline, attributes.Period = unix.SCHED_DEADLINE, promised, period, period
	if unix.SchedSetAttr(0, &attributes, 0) == nil {
		return
	}
	attributes.Policy, attributes.Nice, attributes.Runtime, attributes.Deadline, attributes.Period = unix.SCHED_NORMAL, niceness, slice, 0, 0
	if unix.SchedSetAttr(0, &attributes, 0) != nil {
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, niceness)
	}
}

// takePriority gives the calling thread a real-time priority (SCHED_FIFO), and reports whether the kernel lets it.
func takePriority(priority uint32) bool {
	return unix.SchedSetAttr(0, &unix.SchedAttr{
		Size: uint32(unsafe.Sizeof(unix.SchedAttr{})), Flags: unix.SCHED_FLAG_RESET_ON_FORK, Policy: unix.SCHED_FIFO, Priority: priority,
	}, 0) == nil
}

// becomeOrdinary makes the calling thread, which is locked to its goroutine, one that others may use again. If the system refuses, it stays locked and ends with the goroutine.
func becomeOrdinary() {
	attributes := unix.SchedAttr{Size: uint32(unsafe.Sizeof(unix.SchedAttr{})), Policy: unix.SCHED_NORMAL}
	// A slack of 0 is the one that the thread began with.
	if unix.SchedSetAttr(0, &attributes, 0) == nil && unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0) == nil {
		runtime.UnlockOSThread()
	}
}

// processorTime is how long the calling thread has run.
func processorTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// runQueue tells how long the calling thread has been ready to run without running.
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

// errCounters says that the scheduler's counters are not what they are known to be.
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
