package congestion

import "time"

const (
	// A link is slow if packets are marked at a mean delay of slowMark, over slowMarks reports, while the rate is below
	// slowRate. DualPI2 marks a packet by its delay only if two others wait behind it (RFC 9332 appendix A.1). Three
	// packets of 1,224 bytes take 2.9 ms at 10 Mbit/s, more than the ramp of 1.2 ms, and one segment of growth is 4.8 %
	// of the rate, by which the queue grows by another 1.2 ms in a virtual round trip. At 22 Mbit/s three packets take
	// 1.3 ms.
	slowMark  = 2 * time.Millisecond
	slowMarks = 8
	slowRate  = 22e6
	// Without other flows, the rate grows by slowLeast of itself in a virtual round trip, by twice as much slowTime
	// after the last reduction, and by quickGrowth after 0.7 s. If the packets of a report have waited for more than
	// slowQueue on average, half of which are the steps of arrival times, the rate is reduced so that the queue drains
	// within cutDrain, by at least slowCut, but not below slowFloor times the rate at the last marks: delays of a host
	// or a wireless link do not depend on the rate, and would otherwise reduce the rate without end.
	slowFloor = 0.9
	slowLeast = 0.003
	slowTime  = 200 * time.Millisecond
	slowQueue = 600 * time.Microsecond
	slowCut   = 0.01
	// The queue of other flows does not depend on the own rate, and has marks. So slowStrikes marks, slowApart virtual
	// or real round trips apart and within slowCalm of each other, show that there are others if the rate has fallen to
	// slowFallen of that at the first of them: the response to marks alone governs. Beside one and three Prague flows
	// at 10 Mbit/s the rate has fallen to 0.18 to 0.81 by then. Alone, where a series of large frames may be marked
	// three times, it has fallen to 0.9 at most. After slowRetry, a time that doubles up to slowLongest, the rate is
	// reduced to slowTry of itself to find out again.
	slowFallen  = 0.86
	slowStrikes = 3
	slowApart   = 4
	slowCalm    = 500 * time.Millisecond
	slowTry     = 0.93
	slowRetry   = 2 * time.Second
	slowLongest = 32 * time.Second
)

// slowLink decides whether a link is slow and has no other flows. Then the delays of packets show the queue before
// packets are marked, and the queue can be as short as on other links.
type slowLink struct {
	delay           time.Duration // mean delay of marked packets, slowCalm at most
	floor           float64       // lower bound of the rate, bit/s
	others          bool          // other flows use the link
	strikes         int
	first           float64       // rate at the first strike, bit/s
	struck          time.Duration // time of the last strike
	retry, interval time.Duration // end of others, and its length
}

// alone reports whether the link is slow and has no other flows.
func (s *slowLink) alone(rate float64) bool {
	return s.delay >= slowMark && !s.others && rate < slowRate
}

// marked adds a report with marks. period is the time until a reduction has an effect.
func (s *slowLink) marked(now, delay, period time.Duration, rate float64) {
	s.delay += (min(delay, slowCalm) - s.delay) / slowMarks
	s.floor = slowFloor * rate
	if !s.alone(rate) || s.strikes > 0 && now-s.struck < slowApart*period {
		return
	}
	if now-s.struck > slowCalm {
		s.strikes = 0
	}
	if s.strikes == 0 {
		s.first = rate
	}
	s.strikes, s.struck = s.strikes+1, now
	if s.strikes < slowStrikes || rate > slowFallen*s.first {
		return
	}
	s.others, s.strikes = true, 0
	s.interval = min(max(2*s.interval, slowRetry), slowLongest)
	s.retry = now + s.interval
}

// tries reports whether it is time to find out again whether there are other flows.
func (s *slowLink) tries(now time.Duration) bool {
	if !s.others || now < s.retry {
		return false
	}
	s.others = false
	return true
}

// slowGrowth returns the growth in a virtual round trip as a share of the rate. quiet is the time since the last
// reduction or mark.
func slowGrowth(quiet time.Duration) float64 {
	q := quiet.Seconds() / slowTime.Seconds()
	return min(slowLeast*(1+q*q), quickGrowth)
}

// reduced returns the rate after a report of packets that have waited for queue on average.
func (s *slowLink) reduced(rate float64, queue time.Duration) float64 {
	if queue <= slowQueue {
		return rate
	}
	cut := min(max(slowCut, (queue-slowQueue).Seconds()/cutDrain.Seconds()), 1-leastCut)
	return min(rate, max(rate*(1-cut), s.floor))
}
