package directory

import "time"

const (
	// leastDepartures is the minimum number of departed participants before a collection: 64 of 150 kB are 10 MB.
	leastDepartures = 64
	// collectDelay is the delay of the collection, in which the connections of the last participants end.
	collectDelay = 5 * time.Second
)

// gcTrigger decides when the memory of departed participants is collected. Go collects when the allocated memory has
// doubled, or after two minutes. Until then, an idle server would keep the memory of departed participants.
type gcTrigger struct{ departed int }

// left counts a departed participant and reports whether a collection is due: since the last collection, at least as
// many participants have left as remain.
func (g *gcTrigger) left(remaining int) (due bool) {
	g.departed++
	if g.departed < max(leastDepartures, remaining) {
		return false
	}
	g.departed = 0
	return true
}
