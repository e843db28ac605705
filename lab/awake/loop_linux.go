package awake

import (
	"os"
	"os/exec"
	"strconv"

	"golang.org/x/sys/unix"
)

// script loops for as long as the process of its first argument is there, and looks about ten times a second whether it is. That process may have been killed before the shell began, which
// then has another parent.
const script = "while kill -0 $1; do i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; done 2>/dev/null"

// startLoops starts as many loops as can be: they take util-linux's chrt and taskset.
func startLoops() (running []*exec.Cmd) {
	for _, program := range loops() {
		if program.Start() == nil {
			running = append(running, program)
		}
	}
	return running
}

func stopLoops(running []*exec.Cmd) {
	for _, program := range running {
		_ = program.Process.Kill()
		// It says that the program was killed, which it was.
		_ = program.Wait()
	}
}

// loops are programs that keep the processors awake on which this process may run, one on each, since the kernel does not spread what has no weight. They give way to all others.
func loops() (programs []*exec.Cmd) {
	var may unix.CPUSet
	if unix.SchedGetaffinity(0, &may) != nil {
		return nil
	}
	self := strconv.Itoa(os.Getpid())
	for processor := range len(may) * 64 {
		if may.IsSet(processor) {
			programs = append(programs, exec.Command("taskset", "--cpu-list", strconv.Itoa(processor), "chrt", "--idle", "0", "nice", "-n", "19", "sh", "-c", script, "awake", self))
		}
	}
	return programs
}
