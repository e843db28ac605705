package ingress

import "sync"

// waker wakes the goroutine of an ingress. waker is safe for any goroutine.
type waker struct {
	woken chan struct{}
	// start starts the goroutine when it is woken for the first time: most connections only receive. start is nil with
	// NewStepped.
	start    func()
	starting sync.Once
}

// wake wakes the goroutine. The caller may hold the ingress's mutex, but not the set's.
func (w *waker) wake() {
	if w.start != nil {
		w.starting.Do(w.start)
	}
	select {
	case w.woken <- struct{}{}:
	default:
	}
}
