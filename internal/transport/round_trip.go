package transport

import (
	"slices"
	"sync"
	"time"
)

// checksKept is how many of the latest connectivity checks tell the round-trip time: with one every two seconds those
// of eight seconds.
const checksKept = 4

// roundTrip takes the quickest of the latest connectivity checks for the round-trip time. A single check that a busy
// host or a queue held up says little about the path, but as the round-trip time until the next one it would make every
// repair within two seconds come too late. Where the path becomes longer, NACK generators notice by their recoveries
// before the last quick check is forgotten. It is safe for concurrent use.
type roundTrip struct {
	mu     sync.Mutex
	checks [checksKept]time.Duration
	count  int
	// answered is how many checks the ICE agent had counted at the last call of addAnswered.
	answered uint64
}

// add takes the time of another check.
func (r *roundTrip) add(took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.take(took)
}

// addAnswered takes the time of the latest check, of so many that were answered. One that is known already changes
// nothing.
func (r *roundTrip) addAnswered(answered uint64, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if answered != r.answered {
		r.answered = answered
		r.take(took)
	}
}

// begin forgets all checks, and takes the time of one on another path, 0 if it is unknown.
func (r *roundTrip) begin(took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.checks, r.count = [checksKept]time.Duration{}, 0
	r.take(took)
}

// take is add. The caller holds the mutex.
func (r *roundTrip) take(took time.Duration) {
	if took <= 0 {
		return
	}
	if r.count == 0 {
		for i := range r.checks {
			r.checks[i] = took
		}
	}
	r.checks[r.count%checksKept] = took
	r.count++
}

// value is the round-trip time, 0 before the first check.
func (r *roundTrip) value() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Min(r.checks[:])
}
