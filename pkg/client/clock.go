package client

import (
	"time"

	"github.com/volsfu/volsfu/pkg/frametimes"
	"github.com/volsfu/volsfu/pkg/frametimes/clock"
)

// hostClock turns this host's time into the server's. It belongs to media's lock.
type hostClock struct {
	source frametimes.Source
	// shift is what this host's clock is taken to be ahead of what the system says, for trials.
	shift     time.Duration
	estimator clock.Estimator
}

func newHostClock(config Config) hostClock {
	c := hostClock{source: config.ClockSource, shift: config.ClockShift}
	switch {
	case c.source != "":
	case config.loopback() && config.ClockShift == 0:
		c.source = frametimes.SourceSystem
	default:
		c.source = frametimes.SourceEstimated
	}
	return c
}

// local is a time of the system's by this host's clock.
func (c *hostClock) local(t time.Time) time.Time { return t.Add(c.shift) }

// asks tells whether the server's clock is to be asked for: where it is not known, or to check what is taken for granted.
func (c *hostClock) asks(check bool) bool { return check || c.source == frametimes.SourceEstimated }

// answered takes an answer about the server's clock that came at now.
func (c *hostClock) answered(t0, t1, t2, now time.Time) error {
	return c.estimator.RoundTrip(t0, t1, t2, c.local(now))
}

// travelled takes a packet of the server's, which was sent by its clock and arrived by this host's. One that contradicts what is known is passed over: its times are put together
// from what two hosts noted of a frame, and a clock that was set shows with the next answer.
func (c *hostClock) travelled(sent, arrived time.Time) {
	if known, ok := c.estimator.Estimate(arrived); ok && sent.Sub(arrived) <= known.Offset+known.Bound {
		c.estimator.Received(sent, arrived)
	}
}

// toServer is a time of the system's by the server's clock.
func (c *hostClock) toServer(t time.Time) time.Time {
	return t.Add(c.shift + c.state(t).Offset)
}

// state is how this host's time is turned into the server's at a time of the system's. Its source is empty as long as nothing is known.
func (c *hostClock) state(now time.Time) frametimes.Clock {
	s := frametimes.Clock{Source: c.source}
	estimate, known := c.estimator.Estimate(c.local(now))
	switch {
	case !known && c.source == frametimes.SourceEstimated:
		s.Source = ""
	case !known:
	case c.source == frametimes.SourceEstimated:
		s.Offset, s.Bound, s.Uncertainty = estimate.Offset, estimate.Bound, estimate.Uncertainty
	default:
		// The offset is within the bound of what was estimated, while 0 is taken for it.
		off := max(estimate.Offset, -estimate.Offset)
		s.Bound, s.Uncertainty = off+estimate.Bound, off+estimate.Uncertainty
		if off > estimate.Bound {
			s.Disagreement = estimate.Offset
		}
	}
	return s
}
