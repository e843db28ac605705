package agent

import "syscall"

// dieWithAgent makes the kernel kill a command when the agent dies.
func dieWithAgent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
