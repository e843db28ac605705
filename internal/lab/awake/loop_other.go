//go:build !linux

package awake

import "os/exec"

// loop is nil: the class of processes that only run when nothing else does is Linux's.
func loop() *exec.Cmd { return nil }
