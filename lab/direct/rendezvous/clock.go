package rendezvous

import (
	"sync"
	"time"

	"github.com/volsfu/volsfu/lab/wallclock"
	"github.com/volsfu/volsfu/pkg/frametimes/clock"
)

// Clock estimates the producer's clock at the consumer, from the times of the system's clock, to which the offset of
// package wallclock is added. It is safe for concurrent use.
type Clock struct {
	same bool

	mu     sync.Mutex
	offset clock.Estimator
	// trips has the latest round-trip times.
	trips [8]time.Duration
	count int
	// bound is the largest bound of a used estimate.
	bound time.Duration
}

// NewClock returns a Clock. same is set if both sides are on the same host, so that there is no offset.
func NewClock(same bool) *Clock { return &Clock{same: same} }

// Ask returns a clock request.
func (c *Clock) Ask(now time.Time) Message {
	return Message{Type: TypeTime, Time: &Time{Asked: now.Add(wallclock.Shift()).UnixMicro()}}
}

// Answer returns the producer's answer to a request that arrived at received.
func (t *Time) Answer(received, now time.Time) Message {
	return Message{Type: TypeTime, Time: &Time{Asked: t.Asked, Received: received.UnixMicro(),
		Answered: now.UnixMicro()}}
}

// Answered handles an answer. An inconsistent answer is ignored.
func (c *Clock) Answered(t *Time, now time.Time) {
	asked, received, answered := time.UnixMicro(t.Asked), time.UnixMicro(t.Received), time.UnixMicro(t.Answered)
	now = now.Add(wallclock.Shift())
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.offset.RoundTrip(asked, received, answered, now) != nil {
		return
	}
	c.trips[c.count%len(c.trips)] = now.Sub(asked) - answered.Sub(received)
	c.count++
}

// Producer implements consumer.Clock.
func (c *Clock) Producer(t time.Time) time.Time {
	t = t.Add(wallclock.Shift())
	if c.same {
		return t
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.offset.Estimate(t); ok {
		if c.count >= len(c.trips) {
			c.bound = max(c.bound, e.Bound)
		}
		return t.Add(e.Offset)
	}
	return t
}

// Bound returns the largest error bound of times that Producer has converted since the first eight answers.
func (c *Clock) Bound() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bound
}

// RTT returns the smallest round-trip time of the latest answers, 0 before the first one.
func (c *Clock) RTT() (rtt time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, trip := range c.trips[:min(c.count, len(c.trips))] {
		if i == 0 || trip < rtt {
			rtt = trip
		}
	}
	return max(rtt, 0)
}
