package congestion

import "time"

const (
	// shortPackets is how many packets have to have met a queue until their losses tell something: of 50, at 5 % of loss, chance takes more than what spills 9 times in a million. At 2 Mbit/s that takes
	// six frames or more.
	shortPackets = 50
	// shortTime is what it takes, beyond a round trip, until frames leave evenly and what they do to the queue has been reported: the frame under way, two after it, and two reports.
	shortTime = 150 * time.Millisecond
	// againTime is within what a queue overflows twice because of the rate, which goes on until that falls. A wireless link that loses what it carries for some milliseconds does so once.
	againTime = 200 * time.Millisecond
	// shortMost is the standing queue up to which one that overflows may be too short. A longer one takes the bursts of frames once it is empty: a frame that fills its interval and leaves in 0.4 of
	// it needs 20 ms.
	shortMost = 20 * time.Millisecond
	// probeShadow is how long after a probe has been reported the queue may hold what it left there.
	probeShadow = 100 * time.Millisecond
)

// shortness tells whether the path's queue is too short for frames that leave in bursts: packets that met a queue are lost, far more than the path loses at any rate.
type shortness struct {
	present       bool
	since         time.Duration // when it overflowed first
	overflowed    time.Duration // and last
	lost, packets int32         // not judged yet
}

// reported takes how many packets of a report met a queue, how many of them were lost, and the largest share that the path may lose by itself, or has lost in all of late: an overflow takes more of
// one report. Where it goes on for long, that is for the estimate from losses to notice. It tells whether the queue overflows again and again though frames leave evenly by now: then the rate is too
// high, and a queue that is so short does not show it by its length.
func (s *shortness) reported(now time.Duration, lost, packets int, share float64, rtt time.Duration) (persistent bool) {
	s.lost, s.packets = s.lost+int32(lost), s.packets+int32(packets)
	if s.packets >= shortPackets {
		if spills(int(s.lost), int(s.packets), share) {
			persistent = s.present && now-s.overflowed <= againTime && s.overflowed-s.since >= shortTime+rtt
			s.overflow(now)
		}
		s.lost, s.packets = 0, 0
	}
	s.present = s.present && now-s.overflowed < spillTime
	return persistent
}

func (s *shortness) overflow(now time.Duration) {
	if !s.present {
		s.present, s.since = true, now
	}
	s.overflowed = now
}
