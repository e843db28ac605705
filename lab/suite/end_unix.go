//go:build unix

package suite

import (
	"os/exec"
	"syscall"
)

// endWhole makes the end of a command end the programs it has started, too: otherwise the Go command ends without its
// tests, and they end without their programs.
func endWhole(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
}
