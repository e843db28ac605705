package awake

import "os/exec"

// script loops for as long as its parent is there, and looks about ten times a second whether it is.
const script = "while kill -0 $PPID; do i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; done 2>/dev/null"

// loop is a program that keeps a processor awake and gives way to all others.
func loop() *exec.Cmd {
	return exec.Command("chrt", "--idle", "0", "nice", "-n", "19", "sh", "-c", script)
}
