package awake

import "sync"

// watch keeps processors awake on behalf of all holders.
type watch struct {
	start func() (stop func())

	mu      sync.Mutex
	holders int
	stop    func()
}

var machine = watch{start: start}

// Hold keeps the processors awake until the returned function is called. The function may be called more than once.
// Several callers may hold at the same time. If the system has no mechanism for this, processors sleep as usual.
func Hold() (release func()) { return machine.hold() }

func (w *watch) hold() (release func()) {
	w.add(1)
	return sync.OnceFunc(func() { w.add(-1) })
}

func (w *watch) add(holders int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.holders
	w.holders += holders
	switch {
	case before == 0 && w.holders > 0:
		w.stop = w.start()
	case before > 0 && w.holders == 0:
		w.stop()
	}
}
