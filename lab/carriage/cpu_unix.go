//go:build unix

package carriage

import (
	"time"

	"golang.org/x/sys/unix"
)

// begun is approximately when the process began.
var begun = time.Now()

// ProcessCPU returns the processor time of this process since it began.
func ProcessCPU() CPU {
	var usage unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &usage) != nil {
		return CPU{}
	}
	c := CPU{User: time.Duration(usage.Utime.Nano()).Seconds(), System: time.Duration(usage.Stime.Nano()).Seconds()}
	c.Percent = 100 * (c.User + c.System) / time.Since(begun).Seconds()
	return c
}
