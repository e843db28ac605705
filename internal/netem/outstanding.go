package netem

import "time"

const (
	initialTimeout = time.Second            // before the first round trip (RFC 6298, section 2)
	minimumTimeout = 200 * time.Millisecond // as in Linux; RFC 6298 has 1 s
	maximumTimeout = time.Minute            // RFC 6298, section 2
)

// outstanding holds the segments of a sender whose fate is not known, the round-trip time that their acknowledgements
// measure, and the timer after which all of them count as lost.
type outstanding struct {
	round roundTrip
	// timer is the time at which the segments in flight count as lost without an acknowledgement, zero if none is in
	// flight.
	timer    time.Time
	sent     segmentRing
	inFlight int
}

func newOutstanding() outstanding { return outstanding{round: roundTrip{timeout: initialTimeout}} }

// send adds the next segment and returns its number.
func (o *outstanding) send(now time.Time) (number uint64) {
	o.inFlight++
	if o.timer.IsZero() {
		o.timer = now.Add(o.round.timeout)
	}
	return o.sent.push(now)
}

// acknowledge records the acknowledgement of a segment and returns the segment. It returns nil for a duplicate, and for
// a segment that counts as lost.
func (o *outstanding) acknowledge(number uint64, now time.Time) *segment {
	s := o.sent.at(number)
	if s == nil || s.acknowledged {
		return nil
	}
	s.acknowledged = true
	o.inFlight--
	o.round.sample(now.Sub(s.sentAt))
	return s
}

// rearm restarts the timer, after an acknowledgement and the losses that it shows.
func (o *outstanding) rearm(now time.Time) {
	o.timer = time.Time{}
	if o.inFlight > 0 {
		o.timer = now.Add(o.round.timeout)
	}
}

// overdue reports whether the timer has expired.
func (o *outstanding) overdue(now time.Time) bool { return !o.timer.IsZero() && !now.Before(o.timer) }

// abandon drops all segments, doubles the timeout (RFC 6298, section 5.5), and returns the number of segments that were
// in flight.
func (o *outstanding) abandon() (lost int) {
	lost, o.inFlight = o.inFlight, 0
	o.sent.first = o.sent.next
	o.round.timeout = min(2*o.round.timeout, maximumTimeout)
	o.timer = time.Time{}
	return lost
}

// roundTrip is the smoothed round-trip time and the resulting timeout (RFC 6298, section 2).
type roundTrip struct{ smoothed, variation, timeout time.Duration }

func (r *roundTrip) sample(rtt time.Duration) {
	if r.smoothed == 0 {
		r.smoothed, r.variation = rtt, rtt/2
	} else {
		r.variation += ((r.smoothed - rtt).Abs() - r.variation) / 4
		r.smoothed += (rtt - r.smoothed) / 8
	}
	r.timeout = min(max(r.smoothed+4*r.variation, minimumTimeout), maximumTimeout)
}

// segment is a sent segment.
type segment struct {
	sentAt       time.Time
	acknowledged bool
}

// segmentRing holds the segments first to next-1, in a ring that grows by doubling.
type segmentRing struct {
	ring        []segment // its length is a power of two
	first, next uint64
}

// at returns a segment, nil if it is not held.
func (r *segmentRing) at(number uint64) *segment {
	if number < r.first || number >= r.next {
		return nil
	}
	return &r.ring[number&uint64(len(r.ring)-1)]
}

// push adds the next segment and returns its number.
func (r *segmentRing) push(now time.Time) uint64 {
	if r.next-r.first == uint64(len(r.ring)) {
		grown := make([]segment, max(2*len(r.ring), 64))
		for n := r.first; n < r.next; n++ {
			grown[n&uint64(len(grown)-1)] = *r.at(n)
		}
		r.ring = grown
	}
	number := r.next
	r.next++
	*r.at(number) = segment{sentAt: now}
	return number
}

// pop removes the first segment, and reports whether it was acknowledged.
func (r *segmentRing) pop() (acknowledged bool) {
	acknowledged = r.at(r.first).acknowledged
	r.first++
	return acknowledged
}
