package realsense

import (
	"math"
	"time"
)

// timetable says when the takes of a recording are due. It is stepped by the reader.
type timetable struct {
	interval time.Duration
	begun    bool
	start    time.Time // when the first take was due
	round    time.Time // when the first take of this round was, or would have been
	again    bool      // the next take begins a round
	latest   time.Time // when the latest was due
	last     int64     // number of the latest that was read
}

// plan is called for every take, at its time in the recording. It tells when the take is due, and whether to skip it because the next one is due already.
func (t *timetable) plan(at time.Duration, now time.Time) (due time.Time, skip bool) {
	switch {
	case !t.begun:
		t.begun = true
		t.start = now
		t.round = now.Add(-at)
		t.last = -1
	case t.again:
		t.round = t.latest.Add(t.interval - at)
	}
	t.again = false
	t.latest = t.round.Add(at)
	return t.latest, now.Sub(t.latest) >= t.interval
}

// restart says that the recording begins again.
func (t *timetable) restart() { t.again = true }

// count numbers a take that was read.
func (t *timetable) count(due time.Time) (number, skipped int64) {
	number = max(t.last+1, int64(math.Round(float64(due.Sub(t.start))/float64(t.interval))))
	skipped = number - t.last - 1
	t.last = number
	return number, skipped
}
