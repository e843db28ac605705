package congestion

import "time"

const (
	// shortPackets is the number of packets that must have met a queue before their losses are evaluated. At 5 % loss,
	// chance exceeds spills for 50 packets 9 times in a million. At 2 Mbit/s 50 packets are six frames or more.
	shortPackets = 50
	// shortTime is the time beyond a round trip until frames are sent evenly and the effect on the queue is reported:
	// the current frame, two more frames, and two reports.
	shortTime = 150 * time.Millisecond
	// againTime: overflows caused by the rate recur within this time until the rate falls. A wireless link that loses
	// all packets for some milliseconds shows one overflow.
	againTime = 200 * time.Millisecond
	// shortMost is the longest standing queue that may be too short when it overflows. A longer one has room for the
	// burst of a frame once it is empty: a frame that fills its interval and leaves in 0.4 of it needs 20 ms.
	shortMost = 20 * time.Millisecond
	// probeShadow is the time after the report of a probe during which the queue may hold the rest of the probe.
	probeShadow = 100 * time.Millisecond
)

// shortness detects that the queue of the path is too short for frames sent in bursts: packets that met a queue are
// lost, far more than the inherent loss of the path.
type shortness struct {
	present       bool
	since         time.Duration // time of the first overflow
	overflowed    time.Duration // time of the last overflow
	lost, packets int32         // not evaluated yet
}

// reported adds the packets of a report that met a queue and the number of them that were lost. share is the larger of
// the path's possible inherent loss and the recent loss: an overflow loses a larger share of one report, and a lasting
// loss is left to the loss estimator. reported returns true if the queue overflows repeatedly although frames are sent
// evenly by now. Then the rate is too high, which a short queue does not show by its length.
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
