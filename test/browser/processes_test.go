package browser

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// processLook is the memory of a browser's processes at an instant.
type processLook struct {
	// At is since the first sample.
	At time.Duration
	// Own is the memory that processes of a kind have written or share with each other, in bytes; shared memory is
	// divided among them, so that sums count it once.
	Own map[string]float64
	// Resident is all their mapped memory, in bytes: in addition to their own, programs, fonts and tables, of which one
	// copy exists, counted for each process that maps it. The system may reclaim these at any time.
	Resident  float64
	Processes int
}

// lookEvery is the sampling interval of processes. A sample walks their page tables, which takes 20 ms of a processor.
const lookEvery = 2 * time.Second

// processWatch samples all processes that descend from one, on a separate goroutine.
type processWatch struct {
	now, stop chan struct{}
	seen      chan []processLook
}

// watchProcesses starts sampling, until it is ended or the context is done.
func watchProcesses(ctx context.Context, ancestor int) *processWatch {
	w := &processWatch{now: make(chan struct{}), stop: make(chan struct{}), seen: make(chan []processLook, 1)}
	go func() {
		began := time.Now()
		ticks := time.NewTicker(lookEvery)
		defer ticks.Stop()
		looks := []processLook{lookAtProcesses(ancestor, 0)}
		for {
			select {
			case <-ticks.C:
			case <-w.now:
			case <-w.stop:
				w.seen <- looks
				return
			case <-ctx.Done():
				return
			}
			looks = append(looks, lookAtProcesses(ancestor, time.Since(began)))
		}
	}()
	return w
}

// look takes one more sample at once.
func (w *processWatch) look() { w.now <- struct{}{} }

// end returns the samples.
func (w *processWatch) end() []processLook {
	close(w.stop)
	return <-w.seen
}

// lookAtProcesses sums the memory of the descendants of a process. Those that end meanwhile are skipped.
func lookAtProcesses(ancestor int, at time.Duration) processLook {
	look := processLook{At: at, Own: map[string]float64{}}
	for _, pid := range descendants(ancestor) {
		command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil {
			continue
		}
		rollup, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			continue
		}
		own, resident := memoryOf(string(rollup))
		look.Own[kindOf(string(command))] += own
		look.Resident += resident
		look.Processes++
	}
	return look
}

// descendants returns the processes that a process has started, directly or indirectly.
func descendants(ancestor int) (found []int) {
	children := map[int][]int{}
	names, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range names {
		stat, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		parent := parentOf(string(stat))
		children[parent] = append(children[parent], pid)
	}
	for next := children[ancestor]; len(next) > 0; {
		pid := next[0]
		found, next = append(found, pid), append(next[1:], children[pid]...)
	}
	return found
}

// parentOf returns the fourth field of /proc/PID/stat, or -1. The second one is the command, which may contain blanks
// and ends with the last parenthesis.
func parentOf(stat string) int {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return -1
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return -1
	}
	return parent
}

// kindOf returns the kind of one of Chromium's processes by its flags. Renderers of the browser's own pages are a
// separate kind, since the memory of a page is the subject of the observation.
func kindOf(command string) string {
	kind, service := "browser", ""
	for _, flag := range strings.FieldsFunc(command, func(r rune) bool { return r == 0 || r == ' ' }) {
		switch name, value, _ := strings.Cut(flag, "="); name {
		case "--type":
			kind = value
		case "--utility-sub-type":
			service, _, _ = strings.Cut(value, ".")
		case "--top-chrome-webui", "--extension-process":
			service = "of the browser's own"
		}
	}
	return strings.TrimSpace(kind + " " + service)
}

// memoryOf reads /proc/PID/smaps_rollup (proc(5)) and returns the memory of the process itself, anonymous, shared with
// others or swapped out, and all of its mapped memory, in bytes.
func memoryOf(rollup string) (own, resident float64) {
	for line := range strings.Lines(rollup) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[2] != "kB" {
			continue
		}
		kilobytes, err := strconv.ParseFloat(fields[1], 64)
		if err != nil {
			continue
		}
		switch fields[0] {
		case "Pss_Anon:", "Pss_Shmem:", "SwapPss:":
			own += kilobytes * 1024
		case "Rss:":
			resident += kilobytes * 1024
		}
	}
	return own, resident
}

// TestProcesses checks the data read about processes.
func TestProcesses(t *testing.T) {
	if _, err := os.Stat("/proc/self/smaps_rollup"); err != nil {
		t.Skip("the memory of processes is not available: no /proc/PID/smaps_rollup")
	}
	if parent := parentOf("71 (a ) b) S 12 71 71 0\n"); parent != 12 {
		t.Errorf("parent is %d, expected 12", parent)
	}
	if parent := parentOf("nothing"); parent != -1 {
		t.Errorf("parent is %d, expected none", parent)
	}
	for command, want := range map[string]string{
		"/usr/lib/chromium/chromium\x00--headless\x00about:blank\x00":             "browser",
		"/usr/lib/chromium/chromium --type=gpu-process --no-sandbox":              "gpu-process",
		"chromium --type=utility --utility-sub-type=network.mojom.NetworkService": "utility network",
		"chromium --type=renderer --top-chrome-webui --lang=en":                   "renderer of the browser's own",
		"chromium --type=renderer --lang=en":                                      "renderer",
	} {
		if got := kindOf(command); got != want {
			t.Errorf("%q is %q, expected %q", command, got, want)
		}
	}
	own, resident := memoryOf("00-ff ---p 00000000 00:00 0 [rollup]\nRss: 900 kB\nPss: 500 kB\nPss_Anon: 300 kB\n" +
		"Pss_File: 100 kB\nPss_Shmem: 50 kB\nAnonymous: 400 kB\nSwapPss: 7 kB\n")
	if own != 357*1024 || resident != 900*1024 {
		t.Errorf("own memory is %g and all %g bytes, expected 357 and 900 kB", own, resident)
	}
	watch := watchProcesses(t.Context(), os.Getppid())
	watch.look()
	looks := watch.end()
	if look := looks[len(looks)-1]; len(looks) < 2 || look.At <= looks[0].At || look.Processes < 1 ||
		look.Own["browser"] <= 0 || look.Resident <= 0 {
		t.Errorf("a test sees %+v below who started it, expected itself, twice", looks)
	}
}
