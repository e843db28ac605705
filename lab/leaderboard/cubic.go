package leaderboard

import (
	"math"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/lab/control"
)

// The parameters of Cubic (RFC 9438) and of the timeout (RFC 6298).
const (
	segment       = 1200.0 // bytes, of a window
	cubicC        = 0.4    // section 5.1
	cubicBeta     = 0.7    // section 4.6
	initialWindow = 10     // segments (RFC 6928)
	leastWindow   = 2      // segments
	// A timeout is at least leastTimeout, as in Linux, and the interval of reports, which replace acknowledgements.
	leastTimeout   = 200 * time.Millisecond
	reportInterval = 250 * time.Millisecond
	// A window grows only if at least usedShare of it was sent in a round trip (RFC 9438 section 5.8): frames leave in
	// bursts, and the allocator keeps a margin below the rate.
	usedShare = 0.5
)

// cubic is the congestion control of TCP Cubic as the controller of frames: the window bounds the bytes in flight, and
// the window over the round trip is the rate of the media. Losses are known from reports; a lost packet is repaired as
// with other controllers, and not as in TCP, where later data waits for it.
type cubic struct {
	base
	window, threshold float64 // bytes
	flight            flight
	reduced           time.Time // losses of packets sent before belong to the last reduction
	deadline          time.Time // of the timeout, zero while nothing is in flight
	backoff           float64   // factor of the timeout

	epoch          time.Time // of the cubic function, zero after a reduction
	maximum, prior float64   // segments
	estimate       float64   // of Reno, in segments
	plateau        float64   // seconds from epoch to the plateau
}

func newCubic(s control.EstimatorStart) congestion.Estimator {
	return &cubic{base: base{limits: s.Limits, trip: s.RTT}, window: initialWindow * segment, threshold: math.Inf(1),
		backoff: 1}
}

// Sent implements congestion.Estimator.
func (c *cubic) Sent(now time.Time, size int) {
	c.flight.add(now, size)
	if c.deadline.IsZero() {
		c.deadline = now.Add(c.timeout())
	}
}

func (c *cubic) timeout() time.Duration {
	return time.Duration(c.backoff * float64(max(2*c.trip, leastTimeout)+reportInterval))
}

// Report implements congestion.Estimator.
func (c *cubic) Report(now time.Time, results []feedback.PacketResult) {
	c.report(now, results)
	c.backoff, c.deadline = 1, now.Add(c.timeout())
	used := c.flight.since(now.Add(-c.trip)) >= usedShare*c.window
	for i := range results {
		r := &results[i]
		switch {
		case r.Sent.Before(c.reduced) || r.Late:
		case !r.Received:
			c.reduce(now)
		case used:
			c.grow(now, float64(r.Size))
		}
	}
}

// Next implements congestion.Estimator.
func (c *cubic) Next() time.Time { return c.deadline }

// Step implements congestion.Estimator.
func (c *cubic) Step(now time.Time) {
	if c.deadline.IsZero() || now.Before(c.deadline) {
		return
	}
	if c.window > leastWindow*segment {
		c.reduce(now)
	}
	c.window, c.maximum = leastWindow*segment, 0
	c.backoff = min(2*c.backoff, 16)
	c.deadline = now.Add(c.timeout())
}

// grow increases the window for acknowledged bytes (section 4.2 and 4.3).
func (c *cubic) grow(now time.Time, bytes float64) {
	if c.window < c.threshold {
		c.window += bytes
		return
	}
	window := c.window / segment
	if c.epoch.IsZero() {
		c.epoch, c.estimate, c.maximum = now, window, max(c.maximum, window)
		c.plateau = math.Cbrt((c.maximum - window) / cubicC)
	}
	alpha := 1.0
	if c.estimate < c.prior {
		alpha = 3 * (1 - cubicBeta) / (1 + cubicBeta)
	}
	acked := bytes / segment
	c.estimate += alpha * acked / window
	at := func(t float64) float64 { return cubicC*math.Pow(t-c.plateau, 3) + c.maximum }
	elapsed := now.Sub(c.epoch).Seconds()
	if at(elapsed) < c.estimate {
		c.window = max(window, c.estimate) * segment
		return
	}
	target := min(max(at(elapsed+c.trip.Seconds()), window), 1.5*window)
	c.window += (target - window) / window * acked * segment
}

// reduce reduces the window after a loss (section 4.6), with fast convergence (section 4.7).
func (c *cubic) reduce(now time.Time) {
	window := c.window / segment
	c.prior = window
	if window < c.maximum {
		window *= (1 + cubicBeta) / 2
	}
	c.maximum, c.epoch, c.reduced = window, time.Time{}, now
	c.window = max(c.window*cubicBeta, leastWindow*segment)
	c.threshold = c.window
}

// Estimate implements congestion.Estimator.
func (c *cubic) Estimate() congestion.Bitrate { return c.Stats().Estimate }

// Stats implements congestion.Estimator.
func (c *cubic) Stats() congestion.Stats {
	s := c.stats(c.window * 8 / max(c.trip, time.Millisecond).Seconds())
	s.Window = int(c.window)
	return s
}

// flight counts the bytes sent in the last round trips.
type flight struct {
	sent []sentAt
	sum  int
}

type sentAt struct {
	at    time.Time
	total int // bytes sent so far, these included
}

// flightMemory bounds the time that is covered.
const flightMemory = 2 * time.Second

func (f *flight) add(now time.Time, size int) {
	f.sum += size
	f.sent = append(f.sent, sentAt{now, f.sum})
	drop := 0
	for drop < len(f.sent)-1 && now.Sub(f.sent[drop].at) > flightMemory {
		drop++
	}
	f.sent = f.sent[drop:]
}

// since returns the number of bytes sent after a time.
func (f *flight) since(from time.Time) float64 {
	for i := len(f.sent) - 1; i >= 0; i-- {
		if !f.sent[i].at.After(from) {
			return float64(f.sum - f.sent[i].total)
		}
	}
	return float64(f.sum)
}
