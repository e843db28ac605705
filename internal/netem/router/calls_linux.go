package router

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// System calls of the thread while packets pass do not wait, or at most for vigil, and are made without informing Go's
// scheduler. On return from an informed call, the runtime yields (sched_yield) if its monitor is just checking the
// thread; a thread with reserved time (SCHED_DEADLINE) thereby loses the rest of its period. Of 30,000 packets per
// second 5 % were late by a millisecond. The disadvantage is that stopping all goroutines, as the garbage collector
// does, may have to wait for the call.

// transfer makes a call that moves bytes between a descriptor and memory, at offset 0 if the call takes one.
func transfer(call uintptr, fd int, b []byte) (int, error) {
	n, _, err := unix.RawSyscall6(call, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))),
		uintptr(len(b)), 0, 0, 0)
	if err != 0 {
		return 0, err
	}
	return int(n), nil
}

// pollBriefly waits for a descriptor, for at most vigil. After an interruption or an error no descriptor is ready.
func pollBriefly(descriptors []unix.PollFd, limit *unix.Timespec) {
	_, _, _ = unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(unsafe.SliceData(descriptors))),
		uintptr(len(descriptors)), uintptr(unsafe.Pointer(limit)), 0, 0, 0)
}
