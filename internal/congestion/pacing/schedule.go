package pacing

import "time"

const (
	// DefaultInterval is the frame interval until timestamps tell.
	DefaultInterval = time.Second / 30
	// minInterval and maxInterval bound what timestamps can tell: 500 to 10 frames per second. Slower ones are spread like those.
	minInterval, maxInterval = 2 * time.Millisecond, 100 * time.Millisecond
	// intervalWeight is that of a new interval in the mean, whose memory so spans about 8 frames.
	intervalWeight = 8
)

// Packet is what a Schedule has to know of a packet.
type Packet struct {
	// Framed says that the packet names its frame (payload v1), so that Frame, Index and Packets hold: the extended frame number, the packet's place in the
	// frame, and the number of packets of the frame. Frames of other codecs are told apart by Timestamp, and are taken to be as long as the one before.
	Framed         bool
	Frame          int64
	Index, Packets int
	Timestamp      uint32
}

// Schedule says when packets of one track are due, given in order of arrival. The first packet of a frame to arrive is due at once; the others follow
// at T_next = T_now + span / packets of the frame: all packets of a frame but the last have the same size, so that this is the rate span / bytes of the frame,
// too. A packet that comes later than that is due when it comes (cut-through). Packets of frames before the newest are repairs, due at once.
type Schedule struct {
	plan     Plan
	clock    uint32
	interval time.Duration
	// measured says that the interval comes from timestamps.
	measured bool

	// started is set with the first packet. frame and timestamp are those of the newest frame.
	started   bool
	framed    bool
	frame     int64
	timestamp uint32
	// base is when the frame's packet 0 is due, gap the time between two, end when the last is due at the latest.
	base, gap, end time.Duration
	// index counts the packets of a frame that is not framed.
	index int
}

// NewSchedule returns a Schedule for a track with an RTP clock rate in Hz.
func NewSchedule(plan Plan, clockRate uint32) Schedule {
	return Schedule{plan: plan, clock: max(clockRate, 1), interval: DefaultInterval}
}

// Interval is the frame interval as far as it is known.
func (s *Schedule) Interval() time.Duration { return s.interval }

// Reset forgets the newest frame: frame numbers and timestamps begin anew. The interval stays.
func (s *Schedule) Reset() { s.started = false }

// Due gives the time at which a packet that arrives now is due, now or later.
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

// compare is positive for a packet of a newer frame, negative for one of an older frame.
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
	// Until the length of a foreign frame is known, nothing is held.
	s.gap = 0
	if packets > 0 {
		s.gap = span / time.Duration(packets)
	}
	s.base, s.end = now-time.Duration(first)*s.gap, now+span
	s.started, s.framed, s.frame, s.timestamp, s.index = true, p.Framed, p.Frame, p.Timestamp, 0
}

// measure takes the interval between the newest frame and a packet of the next one.
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
