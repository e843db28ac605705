//go:build !linux

package codectest

import "time"

// measureThread calls a function. Only Linux reports the cost of a thread.
func measureThread(call func()) (resident uint64, cpu time.Duration) {
	call()
	return 0, 0
}

// residentNow and threadTime are not available on this system.
func residentNow() uint64 { return 0 }

func threadTime() time.Duration { return 0 }
