//go:build unix

package suite

import (
	"os/exec"
	"syscall"
)

// endWhole makes the end of a command also end the programs that the command started. Otherwise the tests would outlive
// the Go command, and their programs would outlive the tests.
func endWhole(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
}
