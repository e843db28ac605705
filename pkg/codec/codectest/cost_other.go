//go:build !linux

package codectest

import "time"

// measureThread calls a function. Only Linux tells what a thread takes.
func measureThread(call func()) (resident uint64, cpu time.Duration) {
	call()
	return 0, 0
}

// residentNow and threadTime tell nothing here.
func residentNow() uint64 { return 0 }

func threadTime() time.Duration { return 0 }
