//go:build unix

package agent

import (
	"os/exec"
	"syscall"
)

// detach puts a command into a process group of its own, so that an interruption of the agent does not end it before
// its controller has its files.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithAgent(cmd.SysProcAttr)
}

// end ends a command and its children: kill at once, otherwise with SIGTERM.
func end(cmd *exec.Cmd, kill bool) {
	s := syscall.SIGTERM
	if kill {
		s = syscall.SIGKILL
	}
	_ = syscall.Kill(-cmd.Process.Pid, s)
}
