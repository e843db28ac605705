package pacing

import "time"

const (
	// DefaultInterval is the frame interval before the first measurement.
	DefaultInterval = time.Second / 30
	// minInterval and maxInterval bound the measured interval: 500 to 10 frames per second. Slower frames are spread as
	// at 10 per second.
	minInterval, maxInterval = 2 * time.Millisecond, 100 * time.Millisecond
	// intervalWeight: a new interval has a weight of 1/8, so the mean covers about 8 frames.
	intervalWeight = 8
)

// Packet describes a packet to a Schedule.
type Packet struct {
	// Framed is set if the packet identifies its frame (payload v1). Then Frame is the extended frame number, Index the
	// packet's position in the frame, and Packets the number of packets of the frame. Frames of other codecs are
	// distinguished by Timestamp; each is assumed to be as long as the previous one.
	Framed         bool
	Frame          int64
	Index, Packets int
	Timestamp      uint32
}

// Schedule computes when packets of one track are due, in order of arrival. The first packet of a frame to arrive is
// due at once; each other packet follows at T_next = T_now + span / packets of the frame. All packets of a frame except
// the last have the same size, so this is also the rate span / bytes of the frame. A packet that arrives later is due
// on arrival (cut-through). Packets of frames before the newest are repairs and due at once.
type Schedule struct {
	plan     Plan
	clock    uint32
	interval time.Duration
	// measured is set if the interval was derived from timestamps.
	measured bool

	// started is set with the first packet. frame and timestamp are those of the newest frame.
	started   bool
	framed    bool
	frame     int64
	timestamp uint32
	// base is the due time of packet 0 of the frame, gap the time between two packets, end the latest due time.
	base, gap, end time.Duration
	// index counts the packets of an unframed frame.
	index int
}

// NewSchedule returns a Schedule for a track with an RTP clock rate in Hz.
func NewSchedule(plan Plan, clockRate uint32) Schedule {
	return Schedule{plan: plan, clock: max(clockRate, 1), interval: DefaultInterval}
}

// Interval returns the frame interval: measured, or DefaultInterval.
func (s *Schedule) Interval() time.Duration { return s.interval }

// Reset forgets the newest frame, because frame numbers and timestamps restart. The interval is kept.
func (s *Schedule) Reset() { s.started = false }

// Due returns the due time of a packet that arrives now.
func (s *Schedule) Due(p Packet, now time.Duration) time.Duration {
	switch order := s.compare(p); {
	case order < 0:
		return now
	case order > 0:
		s.begin(p, now)
	}
	index := p.Index
	if !p.Framed {
		index = s.index
		s.index++
	}
	return max(now, min(s.base+time.Duration(index)*s.gap, s.end))
}

// compare is positive for a packet of a newer frame, negative for a packet of an older frame.
func (s *Schedule) compare(p Packet) int64 {
	switch {
	case !s.started || p.Framed != s.framed:
		return 1
	case p.Framed:
		return p.Frame - s.frame
	}
	return int64(int32(p.Timestamp - s.timestamp))
}

// begin begins a frame with the first of its packets to arrive.
func (s *Schedule) begin(p Packet, now time.Duration) {
	if s.started && p.Framed == s.framed {
		s.measure(p)
	}
	packets, first := p.Packets, p.Index
	if !p.Framed {
		packets, first = s.index, 0
	}
	span := s.plan.Span(s.interval)
	// Until the length of an unframed frame is known, no packet is held.
	s.gap = 0
	if packets > 0 {
		s.gap = span / time.Duration(packets)
	}
	s.base, s.end = now-time.Duration(first)*s.gap, now+span
	s.started, s.framed, s.frame, s.timestamp, s.index = true, p.Framed, p.Frame, p.Timestamp, 0
}

// measure updates the interval from the newest frame and a packet of the next frame.
func (s *Schedule) measure(p Packet) {
	ticks, frames := int32(p.Timestamp-s.timestamp), int64(1)
	if p.Framed {
		frames = p.Frame - s.frame
	}
	if ticks <= 0 {
		return
	}
	interval := time.Duration(int64(ticks) * int64(time.Second) / int64(s.clock) / frames)
	interval = min(max(interval, minInterval), maxInterval)
	if !s.measured {
		s.measured, s.interval = true, interval
		return
	}
	s.interval += (interval - s.interval) / intervalWeight
}
