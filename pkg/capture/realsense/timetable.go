package realsense

import (
	"math"
	"time"
)

// timetable computes when the takes of a recording are due. The reader calls the methods.
type timetable struct {
	interval time.Duration
	begun    bool
	start    time.Time // due time of the first take
	round    time.Time // due time of the first take of this round, even if it was skipped
	again    bool      // the next take starts a round
	latest   time.Time // due time of the latest take
	last     int64     // number of the latest take read
}

// plan must be called for every take with the take's time in the recording. plan returns when the take is due, and
// whether to skip the take because the next take is already due.
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

// restart records that the recording starts again.
func (t *timetable) restart() { t.again = true }

// count numbers a take that was read.
func (t *timetable) count(due time.Time) (number, skipped int64) {
	number = max(t.last+1, int64(math.Round(float64(due.Sub(t.start))/float64(t.interval))))
	skipped = number - t.last - 1
	t.last = number
	return number, skipped
}
