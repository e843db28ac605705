package awake

import (
	"os"
	"os/exec"
	"strconv"

	"golang.org/x/sys/unix"
)

// script loops as long as the process of its first argument lives, and checks that about ten times a second. That
// process may have been killed before the shell began, and the shell then has another parent.
const script = "while kill -0 $1; do i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; done 2>/dev/null"

// startLoops starts as many of the loops as possible: they need chrt and taskset of util-linux.
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
		// The error says that the program was killed, as intended.
		_ = program.Wait()
	}
}

// loops returns programs that keep the processors of this process awake. Each is bound to one processor, because the
// kernel does not spread threads without weight. They give way to all other threads.
func loops() (programs []*exec.Cmd) {
	var may unix.CPUSet
	if unix.SchedGetaffinity(0, &may) != nil {
		return nil
	}
	self := strconv.Itoa(os.Getpid())
	for processor := range len(may) * 64 {
		if may.IsSet(processor) {
			programs = append(programs, exec.Command("taskset", "--cpu-list", strconv.Itoa(processor), "chrt", "--idle",
				"0", "nice", "-n", "19", "sh", "-c", script, "awake", self))
		}
	}
	return programs
}
