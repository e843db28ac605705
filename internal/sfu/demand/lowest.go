package demand

import "time"

// lowestHold is the time for which a tile is reported after the last slot has left the tile's lowest quality. A slot
// that changes between two qualities causes one message in this time.
const lowestHold = 2 * time.Second

// lowest reports the tiles of which a slot takes the lowest quality. A publisher with two paths copies these frames:
// the lowest quality of other tiles is sent for a future switch only, and no receiver shows these frames.
type lowest struct {
	// taken is the reported state of each tile. idle is the time since which a reported tile has been unused, zero
	// while the tile is used.
	taken []bool
	idle  []time.Time
	// due is the time of the next step without a change of a need, zero if there is none.
	due time.Time
}

// newLowest returns a state in which every tile is reported, because publishers begin with all copies.
func newLowest(tiles int) *lowest {
	l := &lowest{taken: make([]bool, tiles), idle: make([]time.Time, tiles)}
	for tile := range l.taken {
		l.taken[tile] = true
	}
	return l
}

// step applies the present needs and reports whether the state has changed. A tile is reported at once.
func (l *lowest) step(now time.Time, needs *counts) (changed bool) {
	l.due = time.Time{}
	for tile := range l.taken {
		idle := &l.idle[tile]
		switch used := needs.takenOf(tile).Has(0); {
		case used:
			changed = changed || !l.taken[tile]
			l.taken[tile], *idle = true, time.Time{}
		case !l.taken[tile]:
		case expired(idle, now, lowestHold, &l.due):
			changed, l.taken[tile], *idle = true, false, time.Time{}
		}
	}
	return changed
}

// earliest returns the earlier of two times, of which zero is none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
