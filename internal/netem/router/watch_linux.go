package router

import (
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/internal/netem"
)

const (
	// watchInterval is how often the watch wakes up: 2,000 times in an iteration of 10 s, which 0.1 % can be told of.
	watchInterval = 5 * time.Millisecond
	// watchPriority is in the middle of those that real-time threads have (SCHED_FIFO, 1 to 99).
	watchPriority = 50
)

// watch is a thread that does nothing but wake up, and counts how late it does. It has a real-time priority (SCHED_FIFO), and goes
// before all ordinary threads, so that neither the programs under test nor their packets make the watch late: a hypervisor does
// that takes processors away, or a kernel that holds them up. So lateness of the watch is a disturbance whatever is measured. Of all
// threads only the router's own goes before it, on one processor.
//
// SCHED_DEADLINE, which the router's thread has, does not suit the watch: Go's runtime yields now and then on the way back from a
// system call (calls_linux.go), and the thread then waits for its next period.
type watch struct {
	stop, stopped chan struct{}
	// prior reports whether the kernel has given the priority. Without it the watch does not run.
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
		// An interrupted sleep is shorter, and no wake-up is due then.
		_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &at, nil)
		due = w.woke(due, monotonic())
	}
}

// woke counts the wake-ups that were due by now, from the given one on, and returns when the next is due. Those that a long
// pause has swallowed were late as well.
func (w *watch) woke(due, now time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ; due <= now; due += watchInterval {
		w.late.Add(now - due)
	}
	return due
}

// lateness is how late the watch was since the last restart.
func (w *watch) lateness() netem.DelayCounts {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.late
}

// restart begins to count anew.
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

// monotonic is the clock that the watch sleeps by.
func monotonic() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic("router: Linux has no monotonic clock, which it has had since 2.6: " + err.Error())
	}
	return time.Duration(t.Nano())
}
