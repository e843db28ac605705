package codectest

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// rusageThread is RUSAGE_THREAD of getrusage(2).
const rusageThread = 1

// measureThread calls a function on a locked thread. measureThread returns the increase of the process's peak memory in
// bytes and the thread's processor time.
func measureThread(call func()) (resident uint64, cpu time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := residentNow()
	began := threadTime()
	call()
	cpu = threadTime() - began
	if peak := statusBytes("VmHWM:"); before > 0 && peak > before {
		resident = peak - before
	}
	return resident, cpu
}

// residentNow resets the peak memory of the process (proc(5), clear_refs) and returns its current
// memory in bytes, or 0 if the kernel does not permit the reset.
func residentNow() uint64 {
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o600); err != nil {
		return 0
	}
	return statusBytes("VmRSS:")
}

// statusBytes returns the value of a line of /proc/self/status in bytes, or 0 if there is no such
// line.
func statusBytes(name string) uint64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, after, _ := bytes.Cut(status, []byte(name))
	line, _, _ := bytes.Cut(after, []byte(" kB"))
	kilobytes, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 10, 64)
	if err != nil {
		return 0
	}
	return kilobytes << 10
}

func threadTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(rusageThread, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
