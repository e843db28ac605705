// Package clock estimates the offset of another host's clock from messages exchanged with that
// host. The estimate has an error bound that holds for any network path. The package is pure: the
// caller passes the times and owns the Estimator.
package clock

import (
	"errors"
	"fmt"
	"time"
)

// ErrTimes reports that the times of a round trip contradict each other.
var ErrTimes = errors.New("times of a round trip contradict each other")

const (
	// historySize is the number of round trips, and of single messages each way, that are kept: 64
	// round trips every two seconds are two minutes.
	historySize = 64
	// maxDrift is the maximum relative drift of two clocks, used until the drift is measured: two
	// crystals of 50 ppm each.
	maxDrift = 100e-6
	// restDrift is the uncertainty of a drift however well it was measured. A crystal changes by
	// less than 1 ppm per degree, and a room by some degrees in two minutes.
	restDrift = 5e-6
	// plausibleDrift is the limit above which a measured drift is rejected. Linux slews a clock by
	// at most 500 ppm.
	plausibleDrift = 600e-6
	// driftSpan is the minimum time over which a drift is measured. If the errors of two best round
	// trips differ by 20 µs, the error of the drift is 2 ppm over ten seconds.
	driftSpan = 10 * time.Second
	// rank is the position, among the quickest messages, of the message that estimates the waiting
	// time of the quickest.
	rank = 3
)

// Estimate is an estimate of the other host's clock at one instant.
type Estimate struct {
	// Offset is added to local times to convert them to the other host's clock.
	Offset time.Duration
	// Bound is the maximum error of Offset for any division of the travelling time between the two
	// directions: half of the sum of the quickest messages of both directions. Bound assumes a
	// drift below 100 ppm.
	Bound time.Duration
	// Uncertainty is the expected maximum error of Offset if both directions of the path have the same delay.
	// Uncertainty includes the time that the quickest messages of either direction may have waited, estimated from the
	// third quickest, and the drift since then. Uncertainty guarantees nothing on an asymmetric path, and is never
	// above Bound.
	Uncertainty time.Duration
	// Drift is the rate of change of Offset, in seconds per second; 0 until it is measured.
	Drift float64
}

// Estimator estimates an offset. The zero value is ready to use.
//
// A message that is sent at t0 by the local clock and arrives at t1 by the other clock shows that the offset is at most
// t1 - t0, because the travelling time is not negative. A message in the other direction, from t2 to t3, shows that the
// offset is at least t2 - t3. The smallest upper limit and the largest lower limit, each corrected for the drift since
// its observation, bound the offset, as in the intersection algorithm of RFC 5905 section 11.2.1. The middle is the
// estimate, as in the clock filter of RFC 5905 section 10. The two messages need not belong to one round trip: messages
// of either direction contribute separately.
type Estimator struct {
	ups, downs side
	// epochs contains the best round trip of each of the latest epochs, for measuring the drift.
	epochs [8]epoch
	next   int
	// drift is the measured drift and rest its uncertainty. Both are 0 before the first
	// measurement.
	drift, rest float64
}

// side contains the limits from messages of one direction.
type side struct {
	limits [historySize]limit
	count  int
}

// limit is the limit of the offset from one message, observed at local time at.
type limit struct {
	offset time.Duration
	at     time.Time
}

func (s *side) add(l limit) {
	s.limits[s.count%historySize] = l
	s.count++
}

func (s *side) all() []limit { return s.limits[:min(s.count, historySize)] }

// epoch contains the best round trip of an interval of epochLength.
type epoch struct {
	begun  time.Time
	at     time.Time
	middle time.Duration
	width  time.Duration
}

// epochLength is the length of an epoch. Eight epochs cover the time for which round trips every
// two seconds are kept.
const epochLength = 15 * time.Second

// RoundTrip adds a round trip that was sent at t0 and returned at t3 by the local clock, and was
// received at t1 and answered at t2 by the other clock. The error wraps ErrTimes if these times are
// impossible.
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

// Sent adds a message that was sent at local time sent and arrived at time arrived of the other
// clock.
func (e *Estimator) Sent(sent, arrived time.Time) {
	up := arrived.Sub(sent)
	if now, ok := e.Estimate(sent); ok && up < now.Offset-now.Bound {
		e.restart()
	}
	e.ups.add(limit{up, sent})
}

// Received adds a message that was sent at time sent of the other clock and arrived at local time
// arrived.
func (e *Estimator) Received(sent, arrived time.Time) {
	down := sent.Sub(arrived)
	if now, ok := e.Estimate(arrived); ok && down > now.Offset+now.Bound {
		e.restart()
	}
	e.downs.add(limit{down, arrived})
}

// checkContradiction restarts the estimate if a round trip contradicts it: one of the clocks was
// set.
func (e *Estimator) checkContradiction(at time.Time, least, most time.Duration) {
	if now, ok := e.Estimate(at); ok && (most < now.Offset-now.Bound || least > now.Offset+now.Bound) {
		e.restart()
	}
}

func (e *Estimator) restart() { *e = Estimator{} }

// updateDrift keeps the best round trip of each epoch and measures the drift between the first and
// the last of them. A constant asymmetry of the path does not matter, because it shifts both
// middles equally.
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
	// The error of each middle is at most half of its round trip. If the sum of these errors
	// exceeds the maximum drift over the span, the measurement is rejected.
	drift := float64(current.middle-first.middle) / float64(span)
	if rest := float64(
		current.width+first.width,
	) / 2 / float64(
		span,
	); rest < maxDrift && drift < plausibleDrift &&
		drift > -plausibleDrift {
		e.drift, e.rest = drift, max(rest, restDrift)
	}
}

// Estimate returns the estimate for local time now. The result is false until there are messages of
// both directions.
func (e *Estimator) Estimate(now time.Time) (Estimate, bool) {
	if e.ups.count == 0 || e.downs.count == 0 {
		return Estimate{}, false
	}
	up, down := e.tightest(e.ups.all(), now, 1), e.tightest(e.downs.all(), now, -1)
	offset := (up.offset - down.offset) / 2
	// One microsecond covers rounding.
	bound := max(up.limit-offset, offset+down.limit, 0) + time.Microsecond
	return Estimate{
		Offset:      offset,
		Bound:       bound,
		Uncertainty: min(bound, max(up.slack, down.slack)/2+time.Microsecond),
		Drift:       e.drift,
	}, true
}

// Shortest returns a time that no round trip was shorter than: the sum of the quickest messages of
// both directions, which the drift between them may make shorter than any round trip. Shortest is 0
// until there are messages of both directions.
func (e *Estimator) Shortest() time.Duration {
	if e.ups.count == 0 || e.downs.count == 0 {
		return 0
	}
	up, down := e.ups.all()[0].offset, e.downs.all()[0].offset
	for _, l := range e.ups.all() {
		up = min(up, l.offset)
	}
	for _, l := range e.downs.all() {
		down = max(down, l.offset)
	}
	return max(0, up-down)
}

// tightest contains the limits of one direction at an instant. For lower limits all signs are
// inverted.
type tightest struct {
	// limit is valid for any error of the measured drift.
	limit time.Duration
	// offset is the tightest limit if the measured drift is exact. slack is the distance to the
	// limit at position rank.
	offset, slack time.Duration
}

// tightest returns the tightest limits at time now. sign is 1 for upper limits and -1 for lower
// limits.
func (e *Estimator) tightest(limits []limit, now time.Time, sign time.Duration) tightest {
	rest, likely := maxDrift, maxDrift
	if e.rest > 0 {
		rest, likely = e.rest, restDrift
	}
	best := tightest{slack: unknownSlack}
	// offsets contains the tightest limits with their likely age correction, in order.
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
	// Fewer messages do not show how long they waited; then only the bound is known.
	if n == rank {
		best.slack = offsets[rank-1].aged - offsets[0].aged
	}
	return best
}

// agedOffset is a limit and its likely value since its observation.
type agedOffset struct{ offset, aged time.Duration }

// unknownSlack is above every bound.
const unknownSlack = 24 * time.Hour
