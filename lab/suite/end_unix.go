//go:build unix

package suite

import (
	"os/exec"
	"syscall"
)

// endWhole has the end of a command be the end of what it has started, too: the Go command ends without its tests, and they without the programs that they run.
func endWhole(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
}
