//go:build unix

package link

import (
	"os/exec"
	"syscall"
)

// leaveTerminal makes a command go on after the terminal that started it is closed.
func leaveTerminal(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
