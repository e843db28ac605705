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

// measureThread calls a function on a thread of its own and returns by how many bytes the process grew at most, and
// the thread's processor time.
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

// residentNow is the memory of the process, from which its peak counts again (proc(5), clear_refs); 0 where the
// kernel does not let it be reset.
func residentNow() uint64 {
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o600); err != nil {
		return 0
	}
	return statusBytes("VmRSS:")
}

// statusBytes is a line of /proc/self/status in bytes, 0 where there is none.
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
