//go:build unix

package carriage

import (
	"time"

	"golang.org/x/sys/unix"
)

// begun is when the process began, as near as a package can tell.
var begun = time.Now()

// ProcessCPU is what this process has used of the processors since it began.
func ProcessCPU() CPU {
	var usage unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &usage) != nil {
		return CPU{}
	}
	c := CPU{User: time.Duration(usage.Utime.Nano()).Seconds(), System: time.Duration(usage.Stime.Nano()).Seconds()}
	c.Percent = 100 * (c.User + c.System) / time.Since(begun).Seconds()
	return c
}
