//go:build !linux

package topology

import "os/exec"

// networkVariable is the environment variable that identifies the commands of a network.
const networkVariable = "VOLLAB_NETWORK"

// Networks do not run on this system, so there are no commands of a network.
func newID() string { return "" }

func dieWithParent(*exec.Cmd) {}

func endStrays() {}

// EndCommandsOf has no effect.
func EndCommandsOf(string) {}

func (n *Network) endCommands() {}
