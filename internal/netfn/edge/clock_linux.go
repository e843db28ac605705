package edge

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// monotonic returns the time of CLOCK_MONOTONIC, the clock of bpf_ktime_get_ns.
func monotonic() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(fmt.Sprintf("the host has no CLOCK_MONOTONIC: %v", err))
	}
	return time.Duration(t.Nano())
}

// microseconds returns a time as the data headers carry it: in µs modulo 2^32.
func microseconds(t time.Duration) uint32 { return uint32(t / time.Microsecond) }
