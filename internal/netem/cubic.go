package netem

import (
	"math"
	"time"
)

// The parameters of Cubic.
const (
	cubicC        = 0.4 // aggressiveness, in segments per cubic second (RFC 9438, section 5.1)
	cubicBeta     = 0.7 // share of the window that remains after a loss or a mark (section 4.6)
	initialWindow = 10  // segments (RFC 6928)
	minimumWindow = 2   // segments
	// a segment is lost when this number of later ones is acknowledged (RFC 5681, section 3.2)
	reorderingSegments = 3
	initialTimeout     = time.Second            // before the first round trip (RFC 6298, section 2)
	minimumTimeout     = 200 * time.Millisecond // as in Linux; RFC 6298 has 1 s
	maximumTimeout     = time.Minute            // RFC 6298, section 2
)

// Cubic is an idealised TCP sender with the congestion control of RFC 9438, unlimited data and no receive window. It
// sends segments of SegmentBytes, each with a unique number, and each is acknowledged separately. Losses are therefore
// known exactly, and a retransmission is a segment like any other; the window is reduced once per round trip. Slow
// start ends with the first loss, because there is no HyStart. Cubic has neither clock nor random decisions: the caller
// steps it.
//
// A mark (classic ECN, RFC 3168) reduces the window as a loss does, to 0.7, as in RFC 9438 section 4.6 and in Linux.
// The coupling of DualPI2 assumes this response. The weaker response of RFC 8511, 0.85, is not used.
type Cubic struct {
	window    float64 // cwnd, in segments
	threshold float64 // ssthresh
	growth    cubicGrowth

	round roundTrip
	// time at which the segments in flight count as lost without an acknowledgement, zero if none is in flight
	timer time.Time

	sent     segmentRing
	inFlight int
	newest   uint64 // one more than the highest acknowledged number
	recover  uint64 // losses of segments before this number belong to the last reduction

	stats CubicStats
}

// CubicStats are the counters and the state of a Cubic sender.
type CubicStats struct {
	// Sent, Acknowledged and Lost count segments.
	Sent, Acknowledged, Lost uint64
	// Marked counts segments acknowledged as marked with CE.
	Marked uint64
	// Reductions counts reductions of the window because of losses or marks, Timeouts those without any
	// acknowledgement.
	Reductions, Timeouts uint64
	// Window is the congestion window in segments.
	Window float64
	// RTT is the smoothed round-trip time, 0 before the first acknowledgement.
	RTT time.Duration
}

// NewCubic returns a sender in slow start.
func NewCubic() *Cubic {
	return &Cubic{window: initialWindow, threshold: math.Inf(1), round: roundTrip{timeout: initialTimeout}}
}

// Stats returns the counters and the state.
func (c *Cubic) Stats() CubicStats {
	s := c.stats
	s.Window, s.RTT = c.window, c.round.smoothed
	return s
}

// Send returns the number of the segment to send now, from 0 on, or false if the window is full. The caller repeats the
// call until it returns false.
func (c *Cubic) Send(now time.Time) (number uint64, ok bool) {
	if c.inFlight+1 > int(c.window) {
		return 0, false
	}
	c.inFlight++
	c.stats.Sent++
	if c.timer.IsZero() {
		c.timer = now.Add(c.round.timeout)
	}
	return c.sent.push(now), true
}

// Acknowledge processes the acknowledgement of a segment, which arrived with CE if marked is set. A duplicate, or one
// for a segment that counts as lost, has no effect.
func (c *Cubic) Acknowledge(number uint64, marked bool, now time.Time) {
	segment := c.sent.at(number)
	if segment == nil || segment.acknowledged {
		return
	}
	segment.acknowledged = true
	c.inFlight--
	c.stats.Acknowledged++
	c.round.sample(now.Sub(segment.sentAt))
	// In recovery the window does not grow. Recovery ends with the acknowledgement of a segment sent after the
	// reduction.
	if marked {
		c.stats.Marked++
	}
	switch {
	case number < c.recover:
	case marked:
		c.reduce()
	default:
		c.grow(now)
	}
	c.newest = max(c.newest, number+1)
	for c.sent.first+reorderingSegments < c.newest {
		lost := c.sent.first
		if !c.sent.pop() {
			c.lose(1)
			if lost >= c.recover {
				c.reduce()
			}
		}
	}
	c.timer = time.Time{}
	if c.inFlight > 0 {
		c.timer = now.Add(c.round.timeout)
	}
}

// Next returns the time of the next Expire, zero if nothing is in flight.
func (c *Cubic) Next() time.Time { return c.timer }

// Expire declares all segments in flight lost after the timeout without an acknowledgement (RFC 6298, section 5; RFC
// 9438, section 4.8). It may be called at any time.
func (c *Cubic) Expire(now time.Time) {
	if c.timer.IsZero() || now.Before(c.timer) {
		return
	}
	c.lose(c.inFlight)
	c.sent.first = c.sent.next
	// After consecutive timeouts, slow start ends at the threshold of the first one (RFC 5681, section 3.1).
	if c.window > 1 {
		c.reduce()
	}
	c.stats.Timeouts++
	// After slow start the window grows from its current value, because there is no former maximum.
	c.window, c.growth.maximum = 1, 0
	c.round.timeout = min(2*c.round.timeout, maximumTimeout)
	c.timer = time.Time{}
}

func (c *Cubic) lose(segments int) {
	c.inFlight -= segments
	c.stats.Lost += uint64(segments)
}

// grow increases the window for one acknowledged segment.
func (c *Cubic) grow(now time.Time) {
	if c.window < c.threshold {
		c.window++
		return
	}
	c.window = c.growth.next(c.window, c.round.smoothed, now)
}

// reduce reduces the window, once for all losses and marks of one round trip.
func (c *Cubic) reduce() {
	c.stats.Reductions++
	c.growth.reduce(c.window)
	c.window = max(c.window*cubicBeta, minimumWindow)
	c.threshold = c.window
	c.recover = c.sent.next
}

// cubicGrowth is the window in congestion avoidance: RFC 9438, section 4. Windows are in segments.
type cubicGrowth struct {
	epoch    time.Time     // start of this congestion avoidance, zero = with the next acknowledgement
	maximum  float64       // W_max: the plateau of the cubic function
	plateau  time.Duration // K: time from epoch to the plateau
	estimate float64       // W_est: the window of Reno
	prior    float64       // cwnd_prior: the window before the latest reduction
}

// reduce records the window at a loss. If it is smaller than at the previous loss, other flows need capacity, and the
// plateau is lowered further: fast convergence (section 4.7).
func (g *cubicGrowth) reduce(window float64) {
	g.prior = window
	if window < g.maximum {
		g.maximum = window * (1 + cubicBeta) / 2
	} else {
		g.maximum = window
	}
	g.epoch = time.Time{}
}

// next returns the window after one more acknowledged segment.
func (g *cubicGrowth) next(window float64, rtt time.Duration, now time.Time) float64 {
	if g.epoch.IsZero() {
		g.epoch, g.estimate = now, window
		g.maximum = max(g.maximum, window)
		g.plateau = time.Duration(math.Cbrt((g.maximum-window)/cubicC) * float64(time.Second))
	}
	// Reno with this β has the same share as standard Reno if it grows by α per round trip up to the prior window, and
	// by 1 above it (section 4.3).
	alpha := 1.0
	if g.estimate < g.prior {
		alpha = 3 * (1 - cubicBeta) / (1 + cubicBeta)
	}
	g.estimate += alpha / window
	elapsed := now.Sub(g.epoch)
	if g.at(elapsed) < g.estimate {
		return max(window, g.estimate)
	}
	target := min(max(g.at(elapsed+rtt), window), 1.5*window)
	return window + (target-window)/window
}

// at returns W_cubic, the cubic function (section 4.2).
func (g *cubicGrowth) at(elapsed time.Duration) float64 {
	t := (elapsed - g.plateau).Seconds()
	return cubicC*t*t*t + g.maximum
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
