package transport

import (
	"slices"
	"sync"
	"time"
)

// checksKept is the number of latest connectivity checks from which the round-trip time is taken. With a check every
// two seconds, four checks are eight seconds.
const checksKept = 4

// roundTrip takes the shortest of the latest connectivity checks as the round-trip time. A check that a busy host or a
// queue delayed does not show the round-trip time of the path, and would delay every repair for the next two seconds.
// If the path becomes longer, NACK generators learn that from their recoveries before the last short check is dropped.
// roundTrip is safe for concurrent use.
type roundTrip struct {
	mu     sync.Mutex
	checks [checksKept]time.Duration
	count  int
	// answered is the number of answered checks that the ICE agent had counted at the last call of addAnswered.
	answered uint64
}

// add adds the duration of a check.
func (r *roundTrip) add(took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.take(took)
}

// addAnswered adds the duration of the ICE agent's latest check. answered is the number of checks answered so far. If
// the number has not changed, the check was added before.
func (r *roundTrip) addAnswered(answered uint64, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if answered != r.answered {
		r.answered = answered
		r.take(took)
	}
}

// begin drops all checks and adds a check of another path. A duration of 0 is unknown.
func (r *roundTrip) begin(took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.checks, r.count = [checksKept]time.Duration{}, 0
	r.take(took)
}

// take is add for callers that hold the mutex.
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

// value returns the round-trip time, 0 before the first check.
func (r *roundTrip) value() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Min(r.checks[:])
}
