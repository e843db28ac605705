package chunks

import (
	"time"

	"golang.org/x/sys/unix"
)

// wakeTime is what waking takes at least: what is left of a gap is waited for awake.
const wakeTime = 10 * time.Microsecond

// prepareNaps has the thread that calls, to which its goroutine must be locked, sleep for as long as it wants to: the
// kernel's usual 50 µs of slack are as long as a gap.
func prepareNaps() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) }

// nap sleeps through a time, but for its end.
func nap(d time.Duration) {
	if d -= wakeTime; d > 0 {
		t := unix.NsecToTimespec(int64(d))
		// What interrupts the nap shortens it: the rest is waited for awake.
		_ = unix.Nanosleep(&t, nil)
	}
}
