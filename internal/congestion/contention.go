package congestion

import (
	"math"
	"time"
)

const (
	// spill is the share of lost packets in a report, beyond the inherent loss of the path, that shows a queue
	// overflow.
	spill = 0.02
	// spillDeviations is the number of standard deviations of the inherent loss that an overflow must exceed, too. At 2
	// Mbit/s a report covers five packets.
	spillDeviations = 5
	// spillTime is how long an overflow is remembered. Cubic returns to the rate at which it filled a queue of some
	// hundred Mbit/s × ms within about ten seconds.
	spillTime = 15 * time.Second
	// A queue without cross traffic empties to emptied now and then: this sender slows down as soon as the queue grows,
	// and drains it within some round trips. A queue that has not emptied for standingTime is held by others.
	emptied      = 3 * time.Millisecond
	standingTime = 250 * time.Millisecond
)

// contention detects cross traffic that keeps the queue of the path full: the queue overflowed after it had not emptied
// for longer than this sender alone would fill it, and has not emptied since. A burst at several times the sender's
// share would then be lost, or would cause losses for others.
type contention struct {
	present bool
	empty   time.Duration // when the queue was last empty
	spilled time.Duration // time of the last overflow
}

// reported adds a report: the number of packets and of lost packets, the inherent loss ratio, and the queueing delay of
// the fastest packet (its round trip minus that of the empty path).
func (c *contention) reported(now time.Duration, lost, packets int, inherent float64, queued time.Duration) {
	switch {
	case queued <= emptied || queued > lossyQueue:
		// After a collapse the queue holds this sender's own packets.
		c.empty, c.present = now, false
	case spills(lost, packets, inherent) && now-c.empty >= standingTime:
		c.present, c.spilled = true, now
	case now-c.spilled >= spillTime:
		c.present = false
	}
}

// spills reports whether lost of packets shows a queue overflow on a path with an inherent loss ratio of share.
func spills(lost, packets int, share float64) bool {
	n := float64(packets)
	return float64(lost) > (spill+share)*n+spillDeviations*math.Sqrt(n*share*(1-share))
}
