//go:build unix

package process

import (
	"time"

	"golang.org/x/sys/unix"
)

// Time returns the processor time that the process has used, in its own code and in the kernel, or 0 if the system does
// not know it.
func Time() time.Duration {
	var usage unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
