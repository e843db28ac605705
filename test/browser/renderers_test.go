package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// renderers are the processes of a browser that contain pages, by process ID.
type renderers []int

// renderersOf returns those that descend from a process.
func renderersOf(ancestor int) (found renderers) {
	for _, pid := range descendants(ancestor) {
		command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && kindOf(string(command)) == "renderer" {
			found = append(found, pid)
		}
	}
	return found
}

// rendererLook is a renderer's memory at an instant, in bytes, and its processor time.
type rendererLook struct {
	resident int64
	cpu      time.Duration
}

// rendererCost is the total cost of renderers since a sample.
type rendererCost struct {
	// peak is the maximum growth in bytes, kept the final growth.
	peak, kept int64
	cpu        time.Duration
}

// look samples each renderer and resets the peak of its memory (proc(5), clear_refs). It skips the test if the system
// does not permit this.
func (r renderers) look(t *testing.T) []rendererLook {
	t.Helper()
	if len(r) == 0 {
		t.Skip("skipped: the browser's processes cannot be listed on this system")
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

// since sums the costs of the renderers since a sample. The peak is that since the latest sample.
func (r renderers) since(looks []rendererLook) (cost rendererCost) {
	for i, pid := range r {
		cost.peak += max(0, statusBytes(pid, "VmHWM:")-looks[i].resident)
		cost.kept += max(0, statusBytes(pid, "VmRSS:")-looks[i].resident)
		cost.cpu += max(0, processorTime(pid)-looks[i].cpu)
	}
	return cost
}

// statusBytes returns the value of a line of /proc/PID/status in bytes, or 0 if it is missing.
func statusBytes(pid int, name string) (size int64) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(status), name)
	_, _ = fmt.Sscan(after, &size)
	return size << 10
}

// processorTime returns the processor time of the threads of a process, the first number of their schedstat files, in
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
