package guest

import (
	"sync"
	"time"
)

// captures stores the capture times of the latest instants. All frames of one number have one
// capture time, even if the program passes different ones. Otherwise receivers could not compute
// the delay, nor the session the number of instants per second.
type captures struct {
	mu     sync.Mutex
	latest [16]instant
}

type instant struct {
	number uint32
	at     time.Time
	// sent is true if a frame of the instant was accepted: until then, another instant may use the
	// number.
	sent bool
}

func (c *captures) place(number uint32) *instant { return &c.latest[number%uint32(len(c.latest))] }

// of returns the capture time of an instant: the given one if the instant is new.
func (c *captures) of(number uint32, told time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.place(number)
	if known.number != number || known.at.IsZero() {
		*known = instant{number: number, at: told}
	}
	return known.at
}

// settle records whether a frame of an instant was accepted. An instant without accepted frames is
// removed: the program tries again with a later one.
func (c *captures) settle(number uint32, at time.Time, sent bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.place(number)
	switch {
	case sent:
		*known = instant{number, at, true}
	case known.number == number && !known.sent:
		*known = instant{}
	}
}
