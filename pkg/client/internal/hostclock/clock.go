// Package hostclock converts the time of this host to the time of the server's clock. A Clock is pure and stepped with
// the time of the system's clock. Its owner serialises all calls.
package hostclock

import (
	"time"

	"github.com/volsfu/volsfu/pkg/frametimes"
	"github.com/volsfu/volsfu/pkg/frametimes/clock"
)

// Clock relates the clock of this host to the clock of the server. This host's clock is the system's clock plus a fixed
// shift.
type Clock struct {
	source    frametimes.Source
	shift     time.Duration
	estimator clock.Estimator
}

// New returns a clock. source is the source of this host's time. With frametimes.SourceEstimated, the estimated offset
// to the server's clock is applied. With any other source, the offset is 0, and the estimate is a check. shift is added
// to the system's clock, for trials with clocks that disagree.
func New(source frametimes.Source, shift time.Duration) Clock {
	return Clock{source: source, shift: shift}
}

// Source returns the source of this host's time.
func (c *Clock) Source() frametimes.Source { return c.source }

// Local returns a time of the system's clock by this host's clock.
func (c *Clock) Local(t time.Time) time.Time { return t.Add(c.shift) }

// Asks reports whether the client asks for the server's clock: to estimate the offset, or to check an offset of 0.
func (c *Clock) Asks(check bool) bool { return check || c.source == frametimes.SourceEstimated }

// Answered processes an answer about the server's clock that arrived at now.
func (c *Clock) Answered(t0, t1, t2, now time.Time) error {
	return c.estimator.RoundTrip(t0, t1, t2, c.Local(now))
}

// Travelled processes a packet that the server sent at a time of its clock and that arrived at a time of this host's
// clock. A packet that contradicts the present estimate is ignored: its times combine the notes of two hosts about a
// frame, and the next answer shows a clock that was set.
func (c *Clock) Travelled(sent, arrived time.Time) {
	if known, ok := c.estimator.Estimate(arrived); ok && sent.Sub(arrived) <= known.Offset+known.Bound {
		c.estimator.Received(sent, arrived)
	}
}

// Shortest returns a time that no round trip to the server was shorter than, 0 if it is not known.
func (c *Clock) Shortest() time.Duration { return c.estimator.Shortest() }

// ToServer returns a time of the system's clock by the server's clock.
func (c *Clock) ToServer(t time.Time) time.Time {
	return t.Add(c.shift + c.State(t).Offset)
}

// State returns the relation of this host's clock to the server's at a time of the system's clock. The source is empty
// before the first answer of the server if the offset is estimated.
func (c *Clock) State(now time.Time) frametimes.Clock {
	s := frametimes.Clock{Source: c.source}
	estimate, known := c.estimator.Estimate(c.Local(now))
	switch {
	case !known && c.source == frametimes.SourceEstimated:
		s.Source = ""
	case !known:
	case c.source == frametimes.SourceEstimated:
		s.Offset, s.Bound, s.Uncertainty = estimate.Offset, estimate.Bound, estimate.Uncertainty
	default:
		// The true offset is within the bound of the estimate. The offset in use is 0.
		off := max(estimate.Offset, -estimate.Offset)
		s.Bound, s.Uncertainty = off+estimate.Bound, off+estimate.Uncertainty
		if off > estimate.Bound {
			s.Disagreement = estimate.Offset
		}
	}
	return s
}
