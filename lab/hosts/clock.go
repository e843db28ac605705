package hosts

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/volsfu/volsfu/lab/agent/wire"
	"github.com/volsfu/volsfu/lab/wallclock"
	"github.com/volsfu/volsfu/pkg/frametimes/clock"
)

const (
	// firstQuestions are asked at firstInterval: the quickest of 32 round trips has waited little.
	firstQuestions = 32
	firstInterval  = 5 * time.Millisecond
	// interval is the time between later questions. The estimator keeps 64 of them, half a minute, over which a drift
	// of 100 ppm is 3 ms before it is measured.
	interval = 250 * time.Millisecond
	// maxDrift is the drift of two clocks between two estimates: two crystals of 50 ppm each.
	maxDrift = 100e-6
	// maxEstimates bounds the estimates in memory: four per second for nine hours, 8 MB. Then every other one of the
	// older half is dropped.
	maxEstimates = 1 << 17
)

// estimate is an estimate of a host's clock.
type estimate struct {
	at     time.Time // by the clock of this machine
	offset time.Duration
	bound  time.Duration
	drift  float64
}

// comparison compares the clock of a host with that of this machine. It is safe for concurrent use.
type comparison struct {
	mu        sync.Mutex
	estimator clock.Estimator
	estimates []estimate
	// quickest is the smallest round trip.
	quickest time.Duration
}

// answered takes the times of a round trip: asked and returned by the clock of this machine, received and answered by
// that of the host.
func (c *comparison) answered(asked, received, answered, returned time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.estimator.RoundTrip(asked, received, answered, returned); err != nil {
		return err
	}
	if trip := returned.Sub(asked) - answered.Sub(received); c.quickest == 0 || trip < c.quickest {
		c.quickest = trip
	}
	now, known := c.estimator.Estimate(returned)
	if !known {
		return nil
	}
	if len(c.estimates) >= maxEstimates {
		kept := c.estimates[:0]
		for i, e := range c.estimates {
			if i >= maxEstimates/2 || i%2 == 0 {
				kept = append(kept, e)
			}
		}
		c.estimates = kept
	}
	c.estimates = append(c.estimates, estimate{returned, now.Offset, now.Bound, now.Drift})
	return nil
}

// Offset is the offset of a host's clock.
type Offset struct {
	// Ahead is how far the host's clock is ahead of this machine's. Bound is the largest possible error of Ahead,
	// however the time of a round trip is divided between its directions.
	Ahead, Bound time.Duration
}

// at returns the offset when the host's clock showed a time. The error is that there was no round trip.
func (c *comparison) at(host time.Time) (Offset, error) {
	return c.nearest(host, func(e estimate) time.Time { return e.at.Add(e.offset) })
}

// here returns the offset when the clock of this machine showed a time. The error is that of at.
func (c *comparison) here(t time.Time) (Offset, error) {
	return c.nearest(t, func(e estimate) time.Time { return e.at })
}

// nearest returns the offset of the estimate whose time is nearest, with the drift since then. Estimates are in the
// order of time by either clock, unless a clock is set.
func (c *comparison) nearest(t time.Time, of func(estimate) time.Time) (Offset, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.estimates) == 0 {
		return Offset{}, errSilent
	}
	i, _ := slices.BinarySearchFunc(c.estimates, t, func(e estimate, t time.Time) int { return of(e).Compare(t) })
	best := c.estimates[min(i, len(c.estimates)-1)]
	if i > 0 {
		if before := c.estimates[i-1]; t.Sub(of(before)).Abs() < of(best).Sub(t).Abs() {
			best = before
		}
	}
	age := t.Sub(of(best))
	return Offset{
		Ahead: best.offset + time.Duration(best.drift*float64(age)),
		Bound: best.bound + time.Duration(maxDrift*float64(age.Abs())),
	}, nil
}

// State describes a host's clock over a run, for the report.
type State struct {
	// First and Last are the first and the last estimate of how far the host's clock was ahead, in milliseconds.
	First float64 `json:"first_ms"`
	Last  float64 `json:"last_ms"`
	// Bound is the largest error bound of an estimate after the first second, Quickest the smallest round trip, in
	// milliseconds.
	Bound    float64 `json:"bound_ms"`
	Quickest float64 `json:"quickest_round_trip_ms"`
	// Drift is the last measured drift in millionths.
	Drift float64 `json:"drift_ppm"`
}

// settling is the time after which the estimates of a comparison count for State.
const settling = time.Second

// state describes the comparison so far.
func (c *comparison) state() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.estimates) == 0 {
		return State{}
	}
	first, last := c.estimates[0], c.estimates[len(c.estimates)-1]
	s := State{First: milliseconds(first.offset), Last: milliseconds(last.offset), Bound: milliseconds(last.bound),
		Quickest: milliseconds(c.quickest), Drift: 1e6 * last.drift}
	for _, e := range c.estimates {
		if e.at.Sub(first.at) >= settling {
			s.Bound = max(s.Bound, milliseconds(e.bound))
		}
	}
	return s
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// ask asks an agent for its time until the context ends or the connection fails. known is called after the first
// questions.
func (c *comparison) ask(ctx context.Context, conn *wire.Conn, known func()) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for n := 1; ; n++ {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		asked := wallclock.Now()
		if err := conn.Send(&wire.Message{Type: wire.TypeClock, Clock: &wire.Clock{Asked: asked.UnixNano()}}); err !=
			nil {
			return err
		}
		m, err := conn.Receive(patience)
		returned := wallclock.Now()
		if err != nil {
			return err
		}
		if m.Type != wire.TypeClock || m.Clock == nil {
			return fmt.Errorf("%w: %.32q in place of a time", wire.ErrMessage, m.Type)
		}
		// A round trip during which a clock was set does not count.
		_ = c.answered(asked.Round(0), time.Unix(0, m.Clock.Received), time.Unix(0, m.Clock.Answered),
			returned.Round(0))
		if n == firstQuestions {
			known()
		}
		if n < firstQuestions {
			timer.Reset(firstInterval)
		} else {
			timer.Reset(interval)
		}
	}
}
