package hotpath

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/exposition"
)

// processTime is the name of the metric with the CPU time of a process, in seconds.
const processTime = "process_cpu_seconds_total"

// ProcessTime returns the CPU time of a process, user and system. If the system counts nanoseconds per thread, these
// counters are used: /proc/PID/stat and the process metrics count hundredths of a second.
func ProcessTime(pid int, counts exposition.Series) time.Duration {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	var sum time.Duration
	for _, task := range tasks {
		if data, err := os.ReadFile(task); err == nil {
			sum += parseSchedule(data)
		}
	}
	if pid == 0 || sum == 0 {
		return time.Duration(counts[processTime] * float64(time.Second))
	}
	return sum
}

// parseSchedule returns the time spent on a CPU, the first number of a schedstat file.
func parseSchedule(data []byte) time.Duration {
	fields := strings.Fields(string(data))
	if len(fields) == 0 {
		return 0
	}
	ns, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(ns)
}

// snapshot holds the counters of a server and of the machine at one time.
type snapshot struct {
	counts  exposition.Series
	cpu     time.Duration
	machine lab.MachineTime
	at      time.Time
}

// snapshotBefore takes the snapshot that begins a window. The server's counters are read first, so that the cost of
// reading them is outside the window.
func snapshotBefore(ctx context.Context, s subject) (snapshot, error) {
	counts, err := s.counts(ctx)
	if err != nil {
		return snapshot{}, err
	}
	return timed(s, counts)
}

// snapshotAfter takes the snapshot that ends a window. The times are read first, for the same reason.
func snapshotAfter(ctx context.Context, s subject) (snapshot, error) {
	var now snapshot
	var err error
	if s.pid() != 0 {
		if now, err = timed(s, nil); err != nil {
			return snapshot{}, err
		}
	}
	counts, err := s.counts(ctx)
	if err != nil {
		return snapshot{}, err
	}
	if now.cpu == 0 {
		return timed(s, counts)
	}
	now.counts = counts
	return now, nil
}

// timed adds times to counters.
func timed(s subject, counts exposition.Series) (snapshot, error) {
	machine, err := lab.ReadMachineTime()
	if err != nil {
		return snapshot{}, err
	}
	return snapshot{counts: counts, cpu: ProcessTime(s.pid(), counts), machine: machine, at: time.Now()}, nil
}
