package congestion

import "time"

// silence notices that a receiver does not report any more what it is sent.
type silence struct {
	cfg     SilenceConfig
	waiting bool          // something was sent since the last report
	since   time.Duration // when the first of it was
	due     time.Duration // when the rate is reduced next
	broken  bool          // it has been reduced
	ended   time.Duration // when a report ended the last silence; what was sent before was lost to the silence
	before  float64       // the rate before, bit/s
}

func (s *silence) sent(now, rtt time.Duration) {
	if !s.waiting {
		s.waiting, s.since, s.due = true, now, now+s.cfg.Timeout+rtt
	}
}

// step tells whether the rate is to be reduced now.
func (s *silence) step(now time.Duration, rate float64) bool {
	if !s.waiting || now < s.due {
		return false
	}
	if !s.broken {
		s.broken, s.before = true, rate
	}
	s.due = now + s.cfg.Interval
	return true
}

// reported notes a report. It returns the rate before the silence that it ends, if it does.
func (s *silence) reported(now time.Duration) (before float64, ended bool) {
	ended, before = s.broken, s.before
	if ended {
		s.ended = now
	}
	s.waiting, s.broken = false, false
	return before, ended
}
