package guest

import (
	"sync"
	"time"
)

// captures remember when the latest instants were captured: all frames of one number have one capture time, whatever the program says of each, or
// receivers could not tell how late they are, nor the session how many there are per second.
type captures struct {
	mu     sync.Mutex
	latest [16]instant
}

type instant struct {
	number uint32
	at     time.Time
	// sent says that a frame of it was taken: until then another instant may get the number.
	sent bool
}

func (c *captures) place(number uint32) *instant { return &c.latest[number%uint32(len(c.latest))] }

// of is the capture time of an instant: the one that is told, if nothing is known of the instant.
func (c *captures) of(number uint32, told time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.place(number)
	if known.number != number || known.at.IsZero() {
		*known = instant{number: number, at: told}
	}
	return known.at
}

// settle says whether a frame of an instant was taken. An instant of which none was is forgotten: the program tries again with a later one.
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
