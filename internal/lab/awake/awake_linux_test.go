package awake

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/test/wait"
)

// TestHold: there is a loop for each processor, in its class, as long as somebody holds, and none of them afterwards.
func TestHold(t *testing.T) {
	if _, err := exec.LookPath("chrt"); err != nil {
		t.Skip("no chrt here, which util-linux has")
	}
	first, second := Hold(), Hold()
	programs := machine.programs
	if len(programs) != runtime.NumCPU() {
		t.Fatalf("%d programs for %d processors", len(programs), runtime.NumCPU())
	}
	for _, p := range programs {
		wait.Until(t, "the loop is in the class of those that give way", func() bool {
			attributes, err := unix.SchedGetAttr(p.Process.Pid, 0)
			return err == nil && attributes.Policy == unix.SCHED_IDLE && attributes.Nice == 19
		})
	}
	first()
	first()
	if len(machine.programs) != runtime.NumCPU() {
		t.Errorf("%d programs while one still holds", len(machine.programs))
	}
	second()
	for _, p := range programs {
		if _, err := os.Stat("/proc/" + strconv.Itoa(p.Process.Pid)); err == nil {
			t.Errorf("process %d is still there", p.Process.Pid)
		}
	}
}

// TestOrphan: a loop whose parent was killed before it began ends at once.
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
