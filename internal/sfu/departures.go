package sfu

import "time"

const (
	// leastDepartures is the number of participants that must have left before their memory is collected: 64 of 150 kB are
	// 10 MB.
	leastDepartures = 64
	// collectDelay is how long after that the collection begins. The connections of the last participants need time to end.
	collectDelay = 5 * time.Second
)

// departures decides when the memory of participants that have left is collected. Go collects when as much has been
// allocated as was in use, or after two minutes: until then, a server that has become idle would keep the memory of the
// participants that have left.
type departures struct{ count int }

// add counts a departure. It reports whether, since the last collection, at least as many participants have left as
// remain.
func (d *departures) add(remaining int) (collect bool) {
	d.count++
	if d.count < max(leastDepartures, remaining) {
		return false
	}
	d.count = 0
	return true
}
