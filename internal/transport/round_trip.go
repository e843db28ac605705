package transport

import (
	"slices"
	"sync"
	"time"
)

// checksKept is how many of the latest connectivity checks tell the round-trip time: with one every two seconds those of eight seconds.
const checksKept = 4

// roundTrip takes the quickest of the latest connectivity checks for the round-trip time. A single check that a busy host or a queue held up says little about
// the path, but as the round-trip time until the next one it would make every repair within two seconds come too late. Where the path becomes
// longer, NACK generators notice by their recoveries before the last quick check is forgotten. It is safe for concurrent use.
type roundTrip struct {
	mu     sync.Mutex
	checks [checksKept]time.Duration
	count  uint64
}

// add takes the time of the latest check, of so many that were answered. One that is known already changes nothing.
func (r *roundTrip) add(answered uint64, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if took <= 0 || answered == r.count {
		return
	}
	if r.count == 0 {
		// Those before are not known one by one.
		for i := range r.checks {
			r.checks[i] = took
		}
	}
	r.checks[answered%checksKept] = took
	r.count = answered
}

// value is the round-trip time, 0 before the first check.
func (r *roundTrip) value() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Min(r.checks[:])
}
