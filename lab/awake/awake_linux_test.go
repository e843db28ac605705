package awake

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/test/wait"
)

// TestLatency: the request is written only if the system has a driver that heeds the request and processors that poll.
func TestLatency(t *testing.T) {
	for _, c := range []struct {
		name, driver, state string
		heeds               bool
	}{
		{"a driver", "haltpoll\n", "POLL\n", true},
		{"none", "none\n", "POLL\n", false},
		{"an empty name", "\n", "POLL\n", false},
		{"processors that wait for interrupts", "psci_idle\n", "WFI\n", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			latency, driver, state := filepath.Join(t.TempDir(), "latency"), filepath.Join(t.TempDir(), "driver"),
				filepath.Join(t.TempDir(), "state")
			for file, text := range map[string]string{latency: "", driver: c.driver, state: c.state} {
				if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			demand, err := demandLatency(latency, driver, state)
			if (err == nil) != c.heeds || err != nil && !errors.Is(err, errNoDriver) {
				t.Fatalf("%v; heeded should be %v", err, c.heeds)
			}
			expected := 0
			if c.heeds {
				expected = 4
				defer func() { _ = demand.Close() }()
			}
			if text, err := os.ReadFile(latency); err != nil || !bytes.Equal(text, make([]byte, expected)) {
				t.Errorf("%v: %q, expected %d bytes of 0", err, text, expected)
			}
		})
	}
	missing := filepath.Join(t.TempDir(), "missing")
	if _, err := demandLatency(missing, missing, missing); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v on a system without these files", err)
	}
}

// TestKernel: the kernel reports the latency that was requested.
func TestKernel(t *testing.T) {
	demand, err := demandLatency(latencyFile, driverFile, stateFile)
	if err != nil {
		t.Skipf("this machine's processors cannot be kept awake by %s: %v", latencyFile, err)
	}
	defer func() { _ = demand.Close() }()
	file, err := os.Open(latencyFile)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var latency int32
	if err := binary.Read(file, binary.NativeEndian, &latency); err != nil || latency != 0 {
		t.Errorf("the kernel bounds the latency by %d µs (%v), expected 0", latency, err)
	}
}

// TestLoops: a loop runs for each processor, in its class, until the loops are stopped.
func TestLoops(t *testing.T) {
	if _, err := exec.LookPath("chrt"); err != nil {
		t.Skip("no chrt here, which util-linux has")
	}
	programs := startLoops()
	defer stopLoops(programs)
	if len(programs) != runtime.NumCPU() {
		t.Fatalf("%d programs for %d processors", len(programs), runtime.NumCPU())
	}
	for _, p := range programs {
		wait.Until(t, "the loop has the idle scheduling class", func() bool {
			attributes, err := unix.SchedGetAttr(p.Process.Pid, 0)
			return err == nil && attributes.Policy == unix.SCHED_IDLE && attributes.Nice == 19
		})
	}
	stopLoops(programs)
	for _, p := range programs {
		if _, err := os.Stat("/proc/" + strconv.Itoa(p.Process.Pid)); err == nil {
			t.Errorf("process %d is still there", p.Process.Pid)
		}
	}
}

// TestOrphan: a loop whose parent was killed before the loop began ends immediately.
func TestOrphan(t *testing.T) {
	parent := exec.Command("true")
	if err := parent.Run(); err != nil {
		t.Fatal(err)
	}
	loop := exec.Command("sh", "-c", script, "awake", strconv.Itoa(parent.Process.Pid))
	if err := loop.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- loop.Wait() }()
	select {
	case <-ended:
	case <-time.After(wait.Patience):
		_ = loop.Process.Kill()
		t.Error("the loop goes on without its parent")
	}
}
