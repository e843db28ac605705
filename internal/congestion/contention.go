package congestion

import (
	"math"
	"time"
)

const (
	// spill is the share of a report's packets, beyond what the path loses at any rate, whose loss says that a queue has overflowed.
	spill = 0.02
	// spillDeviations is by how many standard deviations that has to exceed what chance makes of the path's own losses: at 2 Mbit/s a report has five packets.
	spillDeviations = 5
	// spillTime is for how long that is remembered. Cubic comes back to the rate at which it filled a queue of some hundred Mbit/s × ms within about ten seconds.
	spillTime = 15 * time.Second
	// emptied is what a queue that is there for nobody else holds no more than, now and then: the sender slows down as soon as it grows, and empties it within some round trips.
	emptied      = 3 * time.Millisecond
	standingTime = 250 * time.Millisecond
)

// contention tells whether others keep the path's queue full: it has overflowed after it had not emptied for longer than the sender alone would fill it, and has not
// emptied since. What is sent at several times its share for a moment then is lost, or makes the others lose.
type contention struct {
	present bool
	empty   time.Duration // when the queue was empty last
	spilled time.Duration // when it overflowed last
}

// reported takes how many packets of a report were lost, the share that the path loses at any rate, and by how much the quickest packet's round trip exceeded that of
// the empty path.
func (c *contention) reported(now time.Duration, lost, packets int, inherent float64, queued time.Duration) {
	switch {
	case queued <= emptied || queued > lossyQueue:
		// A path that has lost its capacity holds what is the sender's own.
		c.empty, c.present = now, false
	case spills(lost, packets, inherent) && now-c.empty >= standingTime:
		c.present, c.spilled = true, now
	case now-c.spilled >= spillTime:
		c.present = false
	}
}

// spills tells whether a queue has overflowed, by how many packets were lost on a path that loses a share of them at any rate.
func spills(lost, packets int, share float64) bool {
	n := float64(packets)
	return float64(lost) > (spill+share)*n+spillDeviations*math.Sqrt(n*share*(1-share))
}
