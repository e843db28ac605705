package process

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// RaisePriority raises the program's scheduling priority above that of other busy programs, as players and recorders of
// sound do: a packet that waits for a processor is late, and packets that meanwhile exceed a socket's buffer are lost.
// RaisePriority sets the niceness of every thread, and thereby of all future threads; a thread with a lower niceness
// keeps it. If the system does not permit this, which needs CAP_SYS_NICE or a limit (RLIMIT_NICE), RaisePriority
// returns an error and changes nothing. On other systems than Linux it does nothing.
func RaisePriority(nice int) error {
	// A thread that starts meanwhile has its parent's niceness, possibly the old one.
	for done := make(map[int]bool); ; {
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return fmt.Errorf("list the program's threads: %w", err)
		}
		before := len(done)
		for _, thread := range threads {
			id, err := strconv.Atoi(thread.Name())
			if err != nil || done[id] {
				continue
			}
			if err := raiseThread(id, nice); err != nil {
				return err
			}
			done[id] = true
		}
		if len(done) == before {
			return nil
		}
	}
}

func raiseThread(id, nice int) error {
	// The system call returns 20 less the niceness.
	inverse, err := unix.Getpriority(unix.PRIO_PROCESS, id)
	if err == nil && 20-inverse > nice {
		err = unix.Setpriority(unix.PRIO_PROCESS, id, nice)
	}
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("give thread %d the niceness %d: %w", id, nice, err)
	}
	return nil
}
