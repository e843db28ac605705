//go:build !linux

package awake

import "os/exec"

// loops are none: the class of processes that only run when nothing else does is Linux's.
func loops() []*exec.Cmd { return nil }
