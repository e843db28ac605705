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

	outstanding
	newest  uint64 // one more than the highest acknowledged number
	recover uint64 // losses of segments before this number belong to the last reduction

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
	return &Cubic{window: initialWindow, threshold: math.Inf(1), outstanding: newOutstanding()}
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
	c.stats.Sent++
	return c.send(now), true
}

// Acknowledge processes the acknowledgement of a segment, which arrived with CE if marked is set. A duplicate, or one
// for a segment that counts as lost, has no effect.
func (c *Cubic) Acknowledge(number uint64, marked bool, now time.Time) {
	if c.acknowledge(number, now) == nil {
		return
	}
	c.stats.Acknowledged++
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
			c.inFlight--
			c.stats.Lost++
			if lost >= c.recover {
				c.reduce()
			}
		}
	}
	c.rearm(now)
}

// Next returns the time of the next Expire, zero if nothing is in flight.
func (c *Cubic) Next() time.Time { return c.timer }

// Expire declares all segments in flight lost after the timeout without an acknowledgement (RFC 6298, section 5; RFC
// 9438, section 4.8). It may be called at any time.
func (c *Cubic) Expire(now time.Time) {
	if !c.overdue(now) {
		return
	}
	c.stats.Lost += uint64(c.abandon())
	// After consecutive timeouts, slow start ends at the threshold of the first one (RFC 5681, section 3.1).
	if c.window > 1 {
		c.reduce()
	}
	c.stats.Timeouts++
	// After slow start the window grows from its current value, because there is no former maximum.
	c.window, c.growth.maximum = 1, 0
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
