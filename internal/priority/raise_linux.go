package priority

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Raise gives every thread of this program that niceness, and so all that they will begin; a thread that has a lower one keeps it. Where the system does not allow that, which takes CAP_SYS_NICE or a
// limit (RLIMIT_NICE), the error says so, and nothing has changed. It does so on Linux only.
func Raise(nice int) error {
	// A thread that begins meanwhile has its parent's niceness, which may be that of before.
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
	// The system call gives 20 less the niceness.
	inverse, err := unix.Getpriority(unix.PRIO_PROCESS, id)
	if err == nil && 20-inverse > nice {
		err = unix.Setpriority(unix.PRIO_PROCESS, id, nice)
	}
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("give thread %d the niceness %d: %w", id, nice, err)
	}
	return nil
}
