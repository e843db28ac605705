package rendezvous

import (
	"sync"
	"time"

	"github.com/volsfu/volsfu/pkg/frametimes/clock"
)

// Clock is the consumer's knowledge of the producer's clock. It is safe for concurrent use.
type Clock struct {
	same bool

	mu     sync.Mutex
	offset clock.Estimator
	// trips are the latest round trips.
	trips [8]time.Duration
	count int
}

// NewClock makes one; where both are on the same host there is nothing to be found out.
func NewClock(same bool) *Clock { return &Clock{same: same} }

// Ask is the question to send now.
func (c *Clock) Ask(now time.Time) Message {
	return Message{Type: TypeTime, Time: &Time{Asked: now.UnixMicro()}}
}

// Answer is the producer's answer to a question that came at received.
func (t *Time) Answer(received, now time.Time) Message {
	return Message{Type: TypeTime, Time: &Time{Asked: t.Asked, Received: received.UnixMicro(),
		Answered: now.UnixMicro()}}
}

// Answered takes an answer. One that contradicts itself tells nothing.
func (c *Clock) Answered(t *Time, now time.Time) {
	asked, received, answered := time.UnixMicro(t.Asked), time.UnixMicro(t.Received), time.UnixMicro(t.Answered)
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
	if c.same {
		return t
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.offset.Estimate(t); ok {
		return t.Add(e.Offset)
	}
	return t
}

// RTT is the round-trip time by the quickest of the latest answers, 0 before the first.
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
