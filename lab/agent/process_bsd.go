//go:build unix && !linux

package agent

import "syscall"

// dieWithAgent does nothing: the system has no such setting.
func dieWithAgent(*syscall.SysProcAttr) {}
