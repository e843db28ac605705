package sfu

import "time"

const (
	// leastDepartures is the number of participants that must have left before their memory is collected: 64 of 150 kB
	// are 10 MB.
	leastDepartures = 64
	// collectDelay is how long after that the collection begins. The connections of the last participants need time to
	// end.
	collectDelay = 5 * time.Second
)

// gcTrigger decides when the memory of participants that have left is collected. Go collects when as much has been
// allocated as was in use, or after two minutes: until then, a server that has become idle would keep the memory of the
// participants that have left.
type gcTrigger struct{ departed int }

// left counts a participant that has left, and reports whether a collection is due: at least as many participants have
// left since the last one as remain.
func (g *gcTrigger) left(remaining int) (due bool) {
	g.departed++
	if g.departed < max(leastDepartures, remaining) {
		return false
	}
	g.departed = 0
	return true
}
