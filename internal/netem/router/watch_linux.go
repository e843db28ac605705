package router

import (
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/internal/netem"
)

const (
	// watchInterval is the interval of the watch's wake-ups: 2,000 in an iteration of 10 s, enough for a quantile of
	// 0.1 %.
	watchInterval = 5 * time.Millisecond
	// watchPriority is in the middle of the real-time priorities (SCHED_FIFO, 1 to 99).
	watchPriority = 50
)

// watch is a thread that only wakes up, and measures its lateness. It has a real-time priority (SCHED_FIFO) above all
// ordinary threads, so neither the programs under test nor their packets make it late; only a hypervisor that takes
// processors away, or a kernel that delays threads, does. Lateness of the watch is therefore a disturbance of any
// measurement. Only the router's own thread, on one processor, precedes it.
//
// SCHED_DEADLINE, which the router's thread has, does not suit the watch: Go's runtime sometimes yields on return from
// a system call (calls_linux.go), and the thread then waits for its next period.
type watch struct {
	stop, stopped chan struct{}
	// prior reports whether the kernel has granted the priority. Without it the watch does not run.
	prior bool

	mu   sync.Mutex
	late netem.DelayCounts
}

// startWatch starts the thread.
func startWatch() *watch {
	w := &watch{stop: make(chan struct{}), stopped: make(chan struct{})}
	started := make(chan bool)
	go w.run(started)
	w.prior = <-started
	return w
}

// run wakes up until the watch is closed.
func (w *watch) run(started chan<- bool) {
	defer close(w.stopped)
	runtime.LockOSThread()
	if !takePriority(watchPriority) {
		runtime.UnlockOSThread()
		started <- false
		return
	}
	defer becomeOrdinary()
	started <- true
	for due := monotonic() + watchInterval; ; {
		select {
		case <-w.stop:
			return
		default:
		}
		at := unix.NsecToTimespec(int64(due))
		// After an interrupted sleep no wake-up is due.
		_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &at, nil)
		due = w.woke(due, monotonic())
	}
}

// woke counts the wake-ups that were due by now, starting with due, and returns the time of the next one. Wake-ups
// missed in a long pause were late as well.
func (w *watch) woke(due, now time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ; due <= now; due += watchInterval {
		w.late.Add(now - due)
	}
	return due
}

// lateness returns the lateness of the watch since the last restart.
func (w *watch) lateness() netem.DelayCounts {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.late
}

// restart resets the counts.
func (w *watch) restart() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.late = netem.DelayCounts{}
}

// close ends the thread.
func (w *watch) close() {
	close(w.stop)
	<-w.stopped
}

// monotonic returns the clock by which the watch sleeps.
func monotonic() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic("router: Linux has no monotonic clock, which it has had since 2.6: " + err.Error())
	}
	return time.Duration(t.Nano())
}
