package ingress

import (
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
)

const (
	// quietTime is the silence of a connection between servers from which on its path may have stalled. It is below
	// NACKConfig.TailWait: the end of a frame is not requested because of a stall.
	quietTime = 8 * time.Millisecond
	// settleTime is the time in which the packets of a stall arrive, and are read, after the first of them.
	settleTime = 5 * time.Millisecond
	// maxStall is the longest silence that counts as a stall.
	maxStall = 100 * time.Millisecond
)

// stall detects that the path of a connection between servers stalls: no packet of any track arrives. The ends of
// frames are then not lost but late, and so are the answers to requests. Requests during a stall are needless. If the
// path stalls for up to 100 ms five times a second, two to three packets are requested for each lost one of 1 %, and
// 1.1 with the detection.
type stall struct {
	// last is the arrival of the last packet, resumed that of the first packet after a silence of quietTime.
	last, resumed time.Time
}

// arrived records the arrival of a packet, and reports whether a silence of quietTime ends with the packet.
func (s *stall) arrived(at time.Time) (resumes bool) {
	if resumes = at.Sub(s.last) >= quietTime; resumes {
		s.resumed = at
	}
	s.last = at
	return resumes
}

// search returns the time with which to search for missing packets, for a search that was due at a time and runs now: a
// search that runs late, on a busy host, requests the packets that were missing before the silence. If postponed is
// set, the search has to wait until that time. The silence of a lost end of a frame ends with the next frame, or early
// enough for one repeated request within the deadline.
func (s *stall) search(due, now time.Time, rtt time.Duration, cfg *feedback.NACKConfig) (at time.Time, postponed bool) {
	if rtt <= 0 {
		rtt = cfg.UnknownRTT
	}
	trip, deadline := cfg.Repair(rtt, 0)
	longest := min(maxStall, deadline-2*trip)
	if longest <= quietTime {
		return now, false
	}
	quiet, end := s.last.Add(quietTime), s.last.Add(longest)
	if settled := s.resumed.Add(settleTime); due.Before(settled) {
		due = settled
	}
	if !due.Before(quiet) && due.Before(end) {
		due = end
	}
	switch {
	case now.Before(due):
		return due, true
	case !now.Before(quiet) && now.Before(end):
		return quiet, false
	}
	return now, false
}
