package router

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// What the thread asks of the system while packets pass does not wait, or for vigil at most, and Go's scheduler is not told of it. On the way back from a call that it is told of, the runtime
// yields (sched_yield) whenever its monitor is just looking at the thread: and a thread that the kernel has promised its time (SCHED_DEADLINE) gives away the rest of its period by that. Of 30,000 packets a
// second 5 % were so late by a millisecond. The price is that what stops all goroutines, as the collector of garbage does, may wait for that long.

// transfer makes a call that moves bytes between a descriptor and memory, at offset 0 where the call takes one.
func transfer(call uintptr, fd int, b []byte) (int, error) {
	n, _, err := unix.RawSyscall6(call, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), 0, 0, 0)
	if err != 0 {
		return 0, err
	}
	return int(n), nil
}

// pollBriefly waits for a descriptor, for a time of no more than vigil. An interrupted call has found nothing, as does one that fails.
func pollBriefly(descriptors []unix.PollFd, limit *unix.Timespec) {
	_, _, _ = unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(unsafe.SliceData(descriptors))), uintptr(len(descriptors)), uintptr(unsafe.Pointer(limit)), 0, 0, 0)
}
