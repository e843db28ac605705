package congestion

import "time"

const (
	// collapseGain is the delay that packets have to gain in one go, and collapsePackets how many they have to be, for a rate to be told from them. Where delays
	// vary by themselves it is more by so many times their variation.
	collapseGain       = 10 * time.Millisecond
	collapsePackets    = 10
	collapseVariations = 4
	// maxCollapseGap is the longest pause between two arrivals as a share of the time: a path that stands still for a moment has not become slow.
	maxCollapseGap = 0.25
	// maxCollapsePause is the longest pause between two departures: beyond it another frame begins.
	maxCollapsePause = 5 * time.Millisecond
	// collapseShare: packets that were sent at twice the rate at which they arrive, and arrive at less than half of the estimate, show a path that has lost more than
	// half of its capacity. Frames are sent at 2.5 times the estimate, so that beside others they still arrive at more than that.
	collapseShare = 0.5
)

// collapse notices from a single frame that the path has lost most of its capacity: its packets arrive without a pause at a fraction of the rate.
//
// The trend is smoothed over 20 groups, and a standing queue shows once a second frame has met it, 120 ms after the fall. At 100 Mbit/s that become 25 the
// queue grows by 9 MB per second: in 120 ms by what takes 350 ms to leave.
type collapse struct {
	begun          bool
	first, last    time.Duration // arrivals of the first and the last packet
	sent, lastSent time.Duration // and when they were sent
	gap            time.Duration // the longest between two arrivals
	bytes, packets int           // after the first
}

// add takes a packet in the order of arrival, with the delay that was a queue's and the rate that is now the estimate. It returns the rate that is left where the
// path has lost its capacity, else 0.
func (c *collapse) add(sent, arrived time.Duration, size int, queued, variation time.Duration, rate float64) float64 {
	if queued < calmQueue || sent-c.lastSent > maxCollapsePause || !c.begun {
		c.begin(sent, arrived)
		return 0
	}
	c.gap = max(c.gap, arrived-c.last)
	c.last, c.lastSent = arrived, sent
	c.bytes += size
	c.packets++
	elapsed := arrived - c.first
	if elapsed-(sent-c.sent) < collapseGain+collapseVariations*variation || c.packets < collapsePackets {
		return 0
	}
	left := float64(c.bytes) * 8 / elapsed.Seconds()
	paused := float64(c.gap) > maxCollapseGap*float64(elapsed)
	slower := float64(sent-c.sent) < collapseShare*float64(elapsed)
	c.begin(sent, arrived)
	if paused || !slower || left >= collapseShare*rate {
		return 0
	}
	return left
}

func (c *collapse) begin(sent, arrived time.Duration) {
	*c = collapse{begun: true, first: arrived, last: arrived, sent: sent, lastSent: sent}
}
