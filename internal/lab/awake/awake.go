package awake

import (
	"os/exec"
	"sync"
)

// watch is what keeps processors awake, on behalf of all who asked for it.
type watch struct {
	mu       sync.Mutex
	holders  int
	programs []*exec.Cmd
}

var machine watch

// Hold keeps the processors awake until the function that it returns is called, which may be done more than once. Several may hold at the same time. Where the system has no such class of
// processes, or not the programs that it takes (util-linux's chrt and taskset), processors sleep as they do otherwise.
func Hold() (release func()) {
	machine.add(1)
	return sync.OnceFunc(func() { machine.add(-1) })
}

func (w *watch) add(holders int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.holders
	w.holders += holders
	switch {
	case before == 0 && w.holders > 0:
		for _, program := range loops() {
			if program.Start() == nil {
				w.programs = append(w.programs, program)
			}
		}
	case before > 0 && w.holders == 0:
		for _, program := range w.programs {
			_ = program.Process.Kill()
			// It says that the program was killed, which it was.
			_ = program.Wait()
		}
		w.programs = nil
	}
}
