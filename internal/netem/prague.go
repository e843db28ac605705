package netem

import (
	"math"
	"time"
)

// The parameters of Prague, from draft-briscoe-iccrg-prague-congestion-control unless another source is named.
const (
	pragueGain = 1.0 / 16 // of the moving average of the share of marks
	// PragueVirtualRTT is the round trip of which a flow with a shorter one behaves, as in TCP Prague and
	// udp_prague: such flows have equal rates whatever their round trips are.
	PragueVirtualRTT = 25 * time.Millisecond
	// PragueBurst bounds a burst of segments, as a time at the rate (RFC 9331, section 4.3; TCP Prague has 2^-12 s).
	PragueBurst = 250 * time.Microsecond
	// pragueBeta is the share of the window that remains after a loss: that of Reno.
	pragueBeta = 0.5
	// pragueSlack is the window relative to the bytes in flight at the paced rate, as in udp_prague: the pacing limits
	// the sender, and the window limits it only if the queue grows within a round trip.
	pragueSlack = 1.03
	// a segment is lost when a segment is acknowledged that was sent this share of a round trip later (RFC 8985,
	// section 6.2; RFC 9331, section 4.3, requires a unit of time)
	pragueReordering = 0.25
)

// Prague is an idealised sender with the scalable congestion control of L4S: draft-briscoe-iccrg-prague-congestion-
// control, as in TCP Prague and udp_prague. It has unlimited data, sends segments of SegmentBytes as ECT(1), and learns
// the codepoint of each. Losses are handled as by Cubic: each segment has a unique number and is acknowledged
// separately.
//
//   - The average α of the share of marked segments is updated once per virtual round trip. A mark multiplies the
//     window by 1 - α/2, at most once per virtual round trip.
//   - The window grows by one segment per virtual round trip. Only unmarked segments let it grow.
//   - A loss halves the window, at most once per round trip.
//   - Slow start ends with the first mark, for which α is 1, or with the first loss.
//   - Segments are paced at window / virtual round trip, in bursts of at most PragueBurst.
//
// The virtual round trip is max(smoothed round trip, PragueVirtualRTT), and the window counts the segments of a virtual
// round trip. With the rate in equilibrium α is 2 / window: two marks per virtual round trip. Prague has neither clock
// nor random decisions: the caller steps it.
type Prague struct {
	window    float64 // in segments per virtual round trip
	slowStart bool
	alpha     float64

	// The share of marks since begin.
	begin         time.Time
	acked, marked int
	// time before which a further mark does not reduce the window
	reduced time.Time

	departs time.Time // of the next burst
	burst   int       // segments left of the current burst

	outstanding
	latest  time.Time // departure of the latest segment that was acknowledged
	recover uint64    // losses of segments before this number belong to the last reduction by a loss

	stats PragueStats
}

// PragueStats are the counters and the state of a Prague sender.
type PragueStats struct {
	// Sent, Acknowledged, Marked and Lost count segments. Marked ones are also acknowledged.
	Sent, Acknowledged, Marked, Lost uint64
	// MarkReductions and LossReductions count reductions of the window, Timeouts those without any acknowledgement.
	MarkReductions, LossReductions, Timeouts uint64
	// Alpha is the average share of marked segments.
	Alpha float64
	// RateBPS is the paced rate in bit/s.
	RateBPS float64
	// RTT is the smoothed round-trip time, 0 before the first acknowledgement.
	RTT time.Duration
}

// NewPrague returns a sender in slow start.
func NewPrague() *Prague {
	return &Prague{window: initialWindow, slowStart: true, alpha: 1, outstanding: newOutstanding()}
}

// Stats returns the counters and the state.
func (c *Prague) Stats() PragueStats {
	s := c.stats
	s.Alpha, s.RateBPS, s.RTT = c.alpha, c.rate()*SegmentBytes*8, c.round.smoothed
	return s
}

// virtual returns the virtual round trip.
func (c *Prague) virtual() time.Duration { return max(c.round.smoothed, PragueVirtualRTT) }

// rate returns the paced rate in segments per second.
func (c *Prague) rate() float64 { return c.window / c.virtual().Seconds() }

// open reports whether the window permits another segment.
func (c *Prague) open() bool {
	limit := c.window
	if c.round.smoothed > 0 {
		limit = pragueSlack * c.rate() * c.round.smoothed.Seconds()
	}
	return float64(c.inFlight) < max(math.Ceil(limit), minimumWindow)
}

// Send returns the number of the segment to send now, from 0 on, or false if none is due. The caller repeats the call
// until it returns false.
func (c *Prague) Send(now time.Time) (number uint64, ok bool) {
	if !c.open() {
		return 0, false
	}
	if c.burst == 0 {
		if now.Before(c.departs) {
			return 0, false
		}
		// A caller that is late by more than a burst does not catch up.
		if earliest := now.Add(-PragueBurst); c.departs.Before(earliest) {
			c.departs = earliest
		}
		rate := c.rate()
		c.burst = max(int(rate*PragueBurst.Seconds()), 1)
		c.departs = c.departs.Add(time.Duration(float64(c.burst) / rate * float64(time.Second)))
	}
	c.burst--
	c.stats.Sent++
	return c.send(now), true
}

// Acknowledge processes the acknowledgement of a segment, which arrived with CE if marked is set. A duplicate, or one
// for a segment that counts as lost, has no effect.
func (c *Prague) Acknowledge(number uint64, marked bool, now time.Time) {
	segment := c.acknowledge(number, now)
	if segment == nil {
		return
	}
	c.stats.Acknowledged++
	c.average(marked, now)
	switch {
	case marked:
		c.stats.Marked++
		c.mark(now)
	case c.slowStart:
		// One segment more in flight per acknowledgement, as a share of the virtual round trip.
		c.window += c.virtual().Seconds() / c.round.smoothed.Seconds()
	default:
		c.window += 1 / c.window
	}
	if segment.sentAt.After(c.latest) {
		c.latest = segment.sentAt
	}
	c.detectLosses(now)
	c.rearm(now)
}

// average counts an acknowledgement, and updates the average share of marks once per virtual round trip.
func (c *Prague) average(marked bool, now time.Time) {
	c.acked++
	if marked {
		c.marked++
	}
	if c.begin.IsZero() {
		c.begin = now
	}
	if now.Sub(c.begin) < c.virtual() {
		return
	}
	if !c.slowStart {
		c.alpha += (float64(c.marked)/float64(c.acked) - c.alpha) * pragueGain
	}
	c.begin, c.acked, c.marked = now, 0, 0
}

// mark reduces the window for a marked segment, at most once per virtual round trip.
func (c *Prague) mark(now time.Time) {
	if now.Before(c.reduced) {
		return
	}
	if c.slowStart {
		c.slowStart, c.alpha = false, 1
	}
	c.stats.MarkReductions++
	c.reduce(1-c.alpha/2, now)
}

func (c *Prague) reduce(factor float64, now time.Time) {
	c.window = max(c.window*factor, minimumWindow)
	c.reduced = now.Add(c.virtual())
}

// detectLosses declares segments lost of which later ones were acknowledged.
func (c *Prague) detectLosses(now time.Time) {
	reordering := time.Duration(pragueReordering * float64(c.round.smoothed))
	for c.sent.first < c.sent.next {
		first := c.sent.at(c.sent.first)
		if !first.acknowledged && c.latest.Sub(first.sentAt) < reordering {
			return
		}
		number := c.sent.first
		if c.sent.pop() {
			continue
		}
		c.inFlight--
		c.stats.Lost++
		if number >= c.recover {
			c.slowStart = false
			c.recover = c.sent.next
			c.stats.LossReductions++
			c.reduce(pragueBeta, now)
		}
	}
}

// Next returns the time at which the next segment or Expire is due, zero if nothing is in flight and nothing was sent.
func (c *Prague) Next() time.Time {
	next := c.timer
	if c.open() && (next.IsZero() || c.departs.Before(next)) {
		next = c.departs
	}
	return next
}

// Expire declares all segments in flight lost after the timeout without an acknowledgement (RFC 6298, section 5), and
// returns to slow start. It may be called at any time.
func (c *Prague) Expire(now time.Time) {
	if !c.overdue(now) {
		return
	}
	c.stats.Lost += uint64(c.abandon())
	c.stats.Timeouts++
	c.burst = 0
	c.window, c.slowStart, c.recover = minimumWindow, true, c.sent.next
}
