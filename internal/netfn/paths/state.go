package paths

import "time"

// State is the state of a path.
type State uint8

// The states.
const (
	Absent  State = iota // not configured
	Unknown              // outside the set, without evidence yet
	Standby              // outside the set, in time by its probes
	Late                 // outside the set, late, lossy or silent by its probes
	Down                 // the interface is down
	Active               // in the set
)

// String returns the state's name.
func (s State) String() string {
	return [...]string{"absent", "unknown", "standby", "late", "down", "active"}[s]
}

// Reason is why a path has its state.
type Reason uint8

// The reasons.
const (
	ReasonNone      Reason = iota
	ReasonStarted          // a trigger started copies
	ReasonLosses           // the set missed too many numbers over several seconds
	ReasonRecovered        // probes of the path were in time and steady
	ReasonRelapsed         // the path varies again after its return
	ReasonRestored         // fewer copies were worse
	ReasonLast             // no other path is left
	ReasonLate             // copies of the path were hardly ever in time
	ReasonNotNeeded        // a smaller set misses as few numbers
	ReasonCrowded          // copies made every path later
	ReasonStopped          // the copies were stopped
	ReasonDown             // the interface is down
	ReasonUp               // the interface is up again
	ReasonProbes           // probes showed the state
)

// String returns the reason as it follows "because".
func (r Reason) String() string {
	return [...]string{"nothing has changed", "a trigger started copies", "the set missed too many packets",
		"the path has recovered", "the path varies again", "fewer copies were worse", "no other path is left",
		"its copies are late",
		"the other paths suffice", "copies made every path later", "copies were stopped", "its interface is down",
		"its interface is up", "its probes show so"}[r]
}

// maxChanges bounds the changes that wait for a call of Changes.
const maxChanges = 64

// Change is a path that joined or left the set.
type Change struct {
	At     time.Duration
	Path   int
	Joined bool
	Reason Reason
}

// PathState is the state of a path, with what the last report says of the path.
type PathState struct {
	State  State
	Since  time.Duration
	Reason Reason
	InTime float64       // share of copies and hellos in time
	Only   float64       // share of numbers that only this path delivered in time
	Loss   float64       // share of copies lost
	Delay  time.Duration // mean delay above the least delay of all paths
}

// backoff is a waiting time that doubles at each failure, from least to most. The zero time counts as least.
type backoff struct{ least, most, wait time.Duration }

func (b *backoff) value() time.Duration { return max(b.wait, b.least) }

func (b *backoff) double() { b.wait = min(2*b.value(), b.most) }

func (b *backoff) reset() { b.wait = 0 }
