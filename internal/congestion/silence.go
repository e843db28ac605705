package congestion

import "time"

// silence detects that a receiver has stopped reporting.
type silence struct {
	cfg     SilenceConfig
	waiting bool          // a packet was sent since the last report
	since   time.Duration // time of the first such packet
	due     time.Duration // time of the next reduction
	broken  bool          // the rate has been reduced
	ended   time.Duration // end of the last silence; packets sent before were lost in the silence
	before  float64       // rate before the silence, bit/s
}

func (s *silence) sent(now, rtt time.Duration) {
	if !s.waiting {
		s.waiting, s.since, s.due = true, now, now+s.cfg.Timeout+rtt
	}
}

// step reports whether the rate is to be reduced now.
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

// reported records a report. If the report ends a silence, reported returns the rate before the silence and true.
func (s *silence) reported(now time.Duration) (before float64, ended bool) {
	ended, before = s.broken, s.before
	if ended {
		s.ended = now
	}
	s.waiting, s.broken = false, false
	return before, ended
}
