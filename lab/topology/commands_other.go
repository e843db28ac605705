//go:build !linux

package topology

import "os/exec"

// networkVariable is the environment variable by which the commands of a network are known.
const networkVariable = "VOLLAB_NETWORK"

// No network runs here, so there are no commands in one.
func newID() string { return "" }

func dieWithParent(*exec.Cmd) {}

func endStrays() {}

// EndCommandsOf has no effect.
func EndCommandsOf(string) {}

func (n *Network) endCommands() {}
