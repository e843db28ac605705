package congestion

import "time"

const (
	// spill is the share of a report's packets, beyond what the path loses at any rate, whose loss says that a queue has overflowed.
	spill = 0.02
	// spillTime is for how long that is remembered. Cubic comes back to the rate at which it filled a queue of some hundred Mbit/s × ms within about ten seconds.
	spillTime = 15 * time.Second
	// emptied is what a queue that is there for nobody else holds no more than once the sender has slowed down.
	emptied = 3 * time.Millisecond
)

// contention tells whether others keep the path's queue full: it has overflowed, and has not emptied since although the sender slowed down. What is sent at several
// times its share for a moment then is lost, or makes the others lose.
type contention struct {
	present bool
	spilled time.Duration // when the queue overflowed last
}

// reported takes how many packets of a report were lost, the share that the path loses at any rate, and by how much the quickest packet's round trip exceeded that of
// the empty path.
func (c *contention) reported(now time.Duration, lost, packets int, inherent float64, queued time.Duration) {
	switch {
	case float64(lost) > (spill+inherent)*float64(packets):
		c.present, c.spilled = true, now
	case queued <= emptied || now-c.spilled >= spillTime:
		c.present = false
	}
}
