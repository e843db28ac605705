package congestion

import "time"

const (
	// shortPackets is how many packets of a report have to have met a queue until their losses tell something.
	shortPackets = 30
	// shortTime is what it takes, beyond a round trip, until frames leave evenly and what they do to the queue has been reported: the frame under way, two after it, and two reports.
	shortTime = 150 * time.Millisecond
)

// shortness tells whether the path's queue is too short for frames that leave in bursts: packets that met a queue are lost, far more than the path loses at any rate, though it empties between
// frames. A frame that fills its interval and leaves in 0.4 of it needs a queue of 20 ms.
type shortness struct {
	present    bool
	since      time.Duration // when it overflowed first
	overflowed time.Duration // and last
}

// reported takes how many packets of a report met a queue, how many of them were lost, and the largest share that the path may lose by itself, or has lost in all of late: an overflow takes
// more of one report. It tells whether the queue overflows though frames leave evenly by now: then the rate is too high, and a queue that is so short does not show it by its length.
func (s *shortness) reported(now time.Duration, lost, packets int, share float64, rtt time.Duration) (evenSo bool) {
	switch {
	case packets >= shortPackets && spills(lost, packets, share):
		if !s.present {
			s.present, s.since = true, now
		}
		s.overflowed = now
		return now-s.since >= shortTime+rtt
	case now-s.overflowed >= spillTime:
		s.present = false
	}
	return false
}
