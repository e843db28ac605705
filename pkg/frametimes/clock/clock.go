// Package clock estimates the offset of another host's clock from ours, by messages that pass between both, with a bound of the error that holds whatever the path. It is
// pure: times come with each call. An Estimator belongs to whoever steps it.
package clock

import (
	"errors"
	"fmt"
	"time"
)

// ErrTimes says that the times of a round trip contradict each other.
var ErrTimes = errors.New("times of a round trip contradict each other")

const (
	// kept is how many of the latest round trips, and of the latest single messages each way, tell: 64 round trips every two seconds are two minutes.
	historySize = 64
	// maxDrift is how fast two clocks drift apart at worst: two crystals of 50 ppm each. It holds until the drift is known.
	maxDrift = 100e-6
	// restDrift is what remains unknown of a drift however well it was measured: a crystal changes by less than 1 ppm per degree, and a room by some degrees in two minutes.
	restDrift = 5e-6
	// plausibleDrift is the drift that is believed: Linux slews a clock by 500 ppm at most.
	plausibleDrift = 600e-6
	// driftSpan is the time that a drift is measured over at least: two best round trips 20 µs apart in error are 2 ppm over ten seconds.
	driftSpan = 10 * time.Second
	// rank is which of the quickest messages tells how much the quickest one may still have waited.
	rank = 3
)

// Estimate is what is known of the other host's clock at an instant.
type Estimate struct {
	// Offset is to be added to our times to get the other's.
	Offset time.Duration
	// Bound is how far Offset may be off, however the travelling time divides between the two directions: half of what the quickest messages of both directions took
	// together. It counts on a drift below 100 ppm.
	Bound time.Duration
	// Uncertainty is how far it may be off if the path takes equally long in both directions: what the quickest messages of either may still have waited, of which the third quickest
	// gives an idea, and what the clocks may have drifted apart since. It guarantees nothing where the path is asymmetric, and is never above Bound.
	Uncertainty time.Duration
	// Drift is how fast Offset changes, in seconds per second; 0 until it is known.
	Drift float64
}

// Estimator estimates an offset. The zero value is ready.
//
// A message that leaves at t0 by our clock and is there at t1 by the other's says that the offset is at most t1 - t0, since it took no less than no time; one that
// comes back, from t2 to t3, says that it is at least t2 - t3. The least of the former and the greatest of the latter, each followed with the drift from when it was
// observed, bound the offset, as in the intersection algorithm of RFC 5905 section 11.2.1; the middle is the estimate, as in its clock filter (section 10).
// The two need not be of one round trip: messages of either direction help by themselves.
type Estimator struct {
	ups, downs side
	// trips are the latest quickest round trips by epoch, for the drift.
	epochs [8]epoch
	next   int
	// drift is what was measured, within rest, 0 while nothing was.
	drift, rest float64
}

// side holds what messages of one direction say.
type side struct {
	limits [historySize]limit
	count  int
}

// limit is what one message says of the offset, as of at by our clock.
type limit struct {
	offset time.Duration
	at     time.Time
}

func (s *side) add(l limit) {
	s.limits[s.count%historySize] = l
	s.count++
}

func (s *side) all() []limit { return s.limits[:min(s.count, historySize)] }

// epoch is the best round trip of some seconds.
type epoch struct {
	begun  time.Time
	at     time.Time
	middle time.Duration
	width  time.Duration
}

// epochLength divides what is remembered for the drift: eight of them are what round trips every two seconds are kept for.
const epochLength = 15 * time.Second

// RoundTrip takes a round trip that left at t0 and returned at t3 by our clock, and was read at t1 and answered at t2 by the other's. It fails with ErrTimes where that
// cannot be.
func (e *Estimator) RoundTrip(t0, t1, t2, t3 time.Time) error {
	here, there := t3.Sub(t0), t2.Sub(t1)
	if here < 0 || there < 0 || there > here {
		return fmt.Errorf("%w: %v here and %v there, expected 0 to %v", ErrTimes, here, there, here)
	}
	up, down := t1.Sub(t0), t2.Sub(t3)
	e.checkContradiction(t3, down, up)
	e.ups.add(limit{up, t0})
	e.downs.add(limit{down, t3})
	e.updateDrift(t3, (up+down)/2, up-down)
	return nil
}

// Sent takes a message of ours that left at sent and was there at arrived by the other's clock.
func (e *Estimator) Sent(sent, arrived time.Time) {
	up := arrived.Sub(sent)
	if now, ok := e.Estimate(sent); ok && up < now.Offset-now.Bound {
		e.restart()
	}
	e.ups.add(limit{up, sent})
}

// Received takes a message of the other's that left at sent by its clock and was here at arrived.
func (e *Estimator) Received(sent, arrived time.Time) {
	down := sent.Sub(arrived)
	if now, ok := e.Estimate(arrived); ok && down > now.Offset+now.Bound {
		e.restart()
	}
	e.downs.add(limit{down, arrived})
}

// checkContradiction begins anew where a round trip cannot be with what was known: one of the clocks was set.
func (e *Estimator) checkContradiction(at time.Time, least, most time.Duration) {
	if now, ok := e.Estimate(at); ok && (most < now.Offset-now.Bound || least > now.Offset+now.Bound) {
		e.restart()
	}
}

func (e *Estimator) restart() { *e = Estimator{} }

// mark keeps the best round trip of each epoch, and measures the drift between the first and the last of them. An asymmetry of the path does not matter as long as it
// stays: it moves both middles alike.
func (e *Estimator) updateDrift(at time.Time, middle, width time.Duration) {
	current := &e.epochs[(e.next+len(e.epochs)-1)%len(e.epochs)]
	if e.next == 0 || at.Sub(current.begun) >= epochLength {
		current = &e.epochs[e.next%len(e.epochs)]
		e.next++
		*current = epoch{begun: at, at: at, middle: middle, width: width}
	} else if width < current.width {
		current.at, current.middle, current.width = at, middle, width
	}
	first := &e.epochs[max(0, e.next-len(e.epochs))%len(e.epochs)]
	span := current.at.Sub(first.at)
	if span < driftSpan {
		return
	}
	// Each middle may be off by half of its round trip. Where that is more than what the drift can have made in that time, they say nothing.
	drift := float64(current.middle-first.middle) / float64(span)
	if rest := float64(current.width+first.width) / 2 / float64(span); rest < maxDrift && drift < plausibleDrift && drift > -plausibleDrift {
		e.drift, e.rest = drift, max(rest, restDrift)
	}
}

// Estimate returns the estimate for a time of ours. It tells false until messages of both directions are known.
func (e *Estimator) Estimate(now time.Time) (Estimate, bool) {
	if e.ups.count == 0 || e.downs.count == 0 {
		return Estimate{}, false
	}
	up, down := e.tightest(e.ups.all(), now, 1), e.tightest(e.downs.all(), now, -1)
	offset := (up.offset - down.offset) / 2
	// A microsecond is for rounding on the way.
	bound := max(up.limit-offset, offset+down.limit, 0) + time.Microsecond
	return Estimate{Offset: offset, Bound: bound, Uncertainty: min(bound, max(up.slack, down.slack)/2+time.Microsecond), Drift: e.drift}, true
}

// tightest is what a side says of an instant; for limits from below all signs are turned.
type tightest struct {
	// limit holds however far the drift is off that was measured.
	limit time.Duration
	// offset is the tightest limit where the drift is as it was measured, and slack by how much the third of them is wider.
	offset, slack time.Duration
}

// tightest finds the tightest limit at a time. sign is 1 for limits from above and -1 for those from below.
func (e *Estimator) tightest(limits []limit, now time.Time, sign time.Duration) tightest {
	rest, likely := maxDrift, maxDrift
	if e.rest > 0 {
		rest, likely = e.rest, restDrift
	}
	best := tightest{slack: unknownSlack}
	// offsets are the tightest ones, aged as is likely, in order.
	var offsets [rank]agedOffset
	n := 0
	for i, l := range limits {
		age := now.Sub(l.at)
		span := float64(max(age, -age))
		offset := sign * (l.offset + time.Duration(e.drift*float64(age)))
		if limit := offset + time.Duration(rest*span); i == 0 || limit < best.limit {
			best.limit = limit
		}
		aged := agedOffset{offset, offset + time.Duration(likely*span)}
		at := n
		for at > 0 && aged.aged < offsets[at-1].aged {
			at--
		}
		if at < rank {
			n = min(n+1, rank)
			copy(offsets[at+1:n], offsets[at:n-1])
			offsets[at] = aged
		}
	}
	best.offset = offsets[0].offset
	// Fewer cannot tell how much they wait: then only the bound is known.
	if n == rank {
		best.slack = offsets[rank-1].aged - offsets[0].aged
	}
	return best
}

// agedOffset is a limit, and what it may have become since it was observed.
type agedOffset struct{ offset, aged time.Duration }

// unknownSlack is above every bound.
const unknownSlack = 24 * time.Hour
