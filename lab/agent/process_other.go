//go:build !unix

package agent

import "os/exec"

// detach does nothing: the system has no process groups.
func detach(*exec.Cmd) {}

// end ends a command at once: the system has no SIGTERM.
func end(cmd *exec.Cmd, _ bool) { _ = cmd.Process.Kill() }
