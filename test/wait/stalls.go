package wait

import (
	"slices"
	"sync"
	"testing"
	"time"
)

// Stalls is how late a goroutine wakes up that does nothing else: the disturbance of the machine, independent of the
// results of a test. Its methods are safe for concurrent use.
type Stalls struct {
	mu      sync.Mutex
	longest time.Duration
	list    []Stall
}

// Stall is a time in which no goroutine may have run.
type Stall struct{ Begin, End time.Time }

// recorded is the duration from which a delay is recorded as a Stall.
const recorded = 50 * time.Millisecond

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
			s.add(Stall{due, time.Now()})
		case <-end:
			return
		}
	}
}

func (s *Stalls) add(stall Stall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	duration := stall.End.Sub(stall.Begin)
	s.longest = max(s.longest, duration)
	if duration >= recorded {
		s.list = append(s.list, stall)
	}
}

// Longest returns the longest delay of a wake-up so far.
func (s *Stalls) Longest() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.longest
}

// From returns the stalls so far that lasted for a duration or longer. Stalls below 50 ms are not recorded.
func (s *Stalls) From(duration time.Duration) []Stall {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.Clone(s.list)
	return slices.DeleteFunc(list, func(stall Stall) bool { return stall.End.Sub(stall.Begin) < duration })
}
