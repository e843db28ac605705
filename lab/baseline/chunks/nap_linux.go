package chunks

import (
	"time"

	"golang.org/x/sys/unix"
)

// wakeTime is the shortest time in which the kernel wakes a thread. The thread spins for the last wakeTime of a gap.
const wakeTime = 10 * time.Microsecond

// prepareNaps sets the timer slack of the calling thread to 1 ns. The goroutine must be locked to the thread. The
// kernel's default slack of 50 µs is as long as a gap.
func prepareNaps() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) }

// nap sleeps for d minus wakeTime.
func nap(d time.Duration) {
	if d -= wakeTime; d > 0 {
		t := unix.NsecToTimespec(int64(d))
		// A signal may end the sleep early. Transmit spins for the rest.
		_ = unix.Nanosleep(&t, nil)
	}
}
