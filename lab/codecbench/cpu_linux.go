package codecbench

import (
	"time"

	"golang.org/x/sys/unix"
)

// processorTime returns the processor time of all threads of this process.
func processorTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
