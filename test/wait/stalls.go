package wait

import (
	"sync/atomic"
	"testing"
	"time"
)

// Stalls is how late a goroutine wakes up that does nothing else: the disturbance of the machine, independent of the
// results of a test. Its methods are safe for concurrent use.
type Stalls struct{ longest atomic.Int64 }

// WatchStalls measures until the end of the test.
func WatchStalls(t testing.TB) *Stalls {
	s := &Stalls{}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		s.watch(end)
	}()
	t.Cleanup(func() {
		close(end)
		<-ended
	})
	return s
}

// watch wakes up until end is closed.
func (s *Stalls) watch(end <-chan struct{}) {
	timer := time.NewTimer(interval)
	defer timer.Stop()
	for due := time.Now().Add(interval); ; due = time.Now().Add(interval) {
		timer.Reset(interval)
		select {
		case <-timer.C:
			s.longest.Store(max(s.longest.Load(), int64(time.Since(due))))
		case <-end:
			return
		}
	}
}

// Longest returns the longest delay of a wake-up so far.
func (s *Stalls) Longest() time.Duration { return time.Duration(s.longest.Load()) }
