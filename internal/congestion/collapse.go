package congestion

import "time"

const (
	// A collapse is detected when at least collapsePackets packets have gained collapseGain of delay. If delays vary by
	// themselves, collapseVariations times the variation is added to the gain.
	collapseGain       = 10 * time.Millisecond
	collapsePackets    = 10
	collapseVariations = 4
	// maxCollapseGap bounds the longest gap between two arrivals, as a share of the whole time: a path that stalls for
	// a moment has not become slow.
	maxCollapseGap = 0.25
	// maxCollapsePause bounds the gap between two departures. After a longer gap another frame begins.
	maxCollapsePause = 5 * time.Millisecond
	// collapseShare: if packets are sent at twice their arrival rate or faster and arrive at less than half of the
	// estimate, the path has lost more than half of its capacity. Frames are sent at 2.5 times the estimate, so beside
	// cross traffic they still arrive at more than half.
	collapseShare = 0.5
)

// collapse detects from a single frame that the path has lost most of its capacity: the packets arrive without gaps at
// a fraction of the rate.
//
// The trend is smoothed over 20 groups, and a standing queue is detected when a second frame has met it, 120 ms after
// the fall. If 100 Mbit/s become 25 Mbit/s, the queue grows by 9 MB per second. In 120 ms it reaches 350 ms.
type collapse struct {
	begun          bool
	first, last    time.Duration // arrival of the first and the last packet
	sent, lastSent time.Duration // departure of the first and the last packet
	gap            time.Duration // longest gap between two arrivals
	bytes, packets int           // without the first packet
}

// add adds a packet in the order of arrival. queued is the queueing part of its delay, gain the delay that the packets
// have to gain, rate the current estimate in bit/s, and share the share of the estimate below which the path has
// collapsed. It returns the remaining rate of the path in bit/s if a collapse was detected, else 0.
func (c *collapse) add(sent, arrived time.Duration, size int, queued, gain time.Duration, share, rate float64) float64 {
	if queued < calmQueue || sent-c.lastSent > maxCollapsePause || !c.begun {
		c.begin(sent, arrived)
		return 0
	}
	c.gap = max(c.gap, arrived-c.last)
	c.last, c.lastSent = arrived, sent
	c.bytes += size
	c.packets++
	elapsed := arrived - c.first
	if elapsed-(sent-c.sent) < gain || c.packets < collapsePackets {
		return 0
	}
	left := float64(c.bytes) * 8 / elapsed.Seconds()
	paused := float64(c.gap) > maxCollapseGap*float64(elapsed)
	slower := float64(sent-c.sent) < share*float64(elapsed)
	c.begin(sent, arrived)
	if paused || !slower || left >= share*rate {
		return 0
	}
	return left
}

func (c *collapse) begin(sent, arrived time.Duration) {
	*c = collapse{begun: true, first: arrived, last: arrived, sent: sent, lastSent: sent}
}
