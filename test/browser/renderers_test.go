package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// renderers are the processes of a browser that have pages, by their numbers.
type renderers []int

// renderersOf are those that descend from a process.
func renderersOf(ancestor int) (found renderers) {
	for _, pid := range descendants(ancestor) {
		command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && kindOf(string(command)) == "renderer" {
			found = append(found, pid)
		}
	}
	return found
}

// rendererLook is what a renderer has of the memory at an instant, in bytes, and what it has taken of processors.
type rendererLook struct {
	resident int64
	cpu      time.Duration
}

// rendererCost is what renderers have taken together since a look.
type rendererCost struct {
	// peak is by how many bytes they were larger at most, kept by how many they are larger.
	peak, kept int64
	cpu        time.Duration
}

// look looks at each renderer, from whose memory its peak counts again (proc(5), clear_refs). It skips the test where
// the system does not let that be.
func (r renderers) look(t *testing.T) []rendererLook {
	t.Helper()
	if len(r) == 0 {
		t.Skip("skipped: the system does not tell which processes the browser has")
	}
	looks := make([]rendererLook, len(r))
	for i, pid := range r {
		reset := fmt.Sprintf("/proc/%d/clear_refs", pid)
		if err := os.WriteFile(reset, []byte("5"), 0o600); err != nil {
			t.Skipf("skipped: the peak of a process's memory cannot be measured: %v", err)
		}
		looks[i] = rendererLook{statusBytes(pid, "VmRSS:"), processorTime(pid)}
	}
	return looks
}

// since adds up what the renderers have taken since a look. The peak is that since the last one.
func (r renderers) since(looks []rendererLook) (cost rendererCost) {
	for i, pid := range r {
		cost.peak += max(0, statusBytes(pid, "VmHWM:")-looks[i].resident)
		cost.kept += max(0, statusBytes(pid, "VmRSS:")-looks[i].resident)
		cost.cpu += max(0, processorTime(pid)-looks[i].cpu)
	}
	return cost
}

// statusBytes is a line of /proc/PID/status in bytes, 0 where there is none.
func statusBytes(pid int, name string) (size int64) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(status), name)
	_, _ = fmt.Sscan(after, &size)
	return size << 10
}

// processorTime is what the threads of a process have taken, which the first number of their schedstat files says in
// nanoseconds.
func processorTime(pid int) (sum time.Duration) {
	names, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, name := range names {
		var ns int64
		if data, err := os.ReadFile(name); err == nil {
			_, _ = fmt.Sscan(string(data), &ns)
		}
		sum += time.Duration(ns)
	}
	return sum
}
