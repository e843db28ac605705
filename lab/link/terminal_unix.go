//go:build unix

package link

import (
	"os/exec"
	"syscall"
)

// leaveTerminal makes a command one that goes on when the terminal that started it is closed.
func leaveTerminal(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
