package redundancy

import "time"

const (
	// budgetShare is the largest ratio of copied bytes and sent bytes in the mode Auto, without probes, except while
	// the primary path is interrupted and except for audio alone.
	budgetShare = 0.30 - probeShare
	// maxCredit bounds the copies that a time without copies permits, in bytes: a frame of a lowest quality.
	maxCredit = 64_000
	// lossyPath is the share of lost packets on the primary path above which the ends of frames are copied. Below it,
	// the end of less than one frame in a hundred is lost, and is repaired 10 ms later than other packets. Copies of
	// one in ten packets are too much for that.
	lossyPath = 0.01
	// overtaken is the time within which a report may overtake another. After a pause of 36 minutes, half of 2^32 µs, a
	// later report looks like an earlier one.
	overtaken = time.Minute
	// strandedAge is the age up to which packets lost in an outage are sent again: the time for which a frame is
	// repaired on a short path.
	strandedAge = 150 * time.Millisecond
	// suspension is the longest time for which an outage suspends the congestion control. The transport leaves a path
	// within 1.25 s of its failure.
	suspension = 2 * time.Second
	// overtaking is the least time by which copies arrive before the packets of the primary path, if they do. For
	// mostOvertaking, the time until the transport moves to a better path that has returned and a second more, arrivals
	// then say nothing about the primary path.
	overtaking     = 5 * time.Millisecond
	mostOvertaking = 3 * time.Second
)

// Packet is a packet that is about to leave.
type Packet struct {
	SSRC     uint32
	Sequence uint16
	// Size is the size on the wire in bytes.
	Size  int
	Class Class
	// Begins and Ends are set for the first and the last packet of a frame.
	Begins, Ends bool
	// Doubled is set by Select if the packet leaves twice on the primary path: audio has no retransmissions, and the
	// second path carries nothing.
	Doubled bool
}

// Stream is the state of one outgoing stream between the packets of a frame. The zero value is ready to use.
type Stream struct{ whole bool }

// Selector selects the packets to one peer that are copied. It takes 150 kB, so it is made only for a peer with a
// second path.
type Selector struct {
	mode    Mode
	primary uint8
	origin  origin
	paths   [Paths]pathState
	// estimates are those of each path, of which the one of the path that is not the primary one is in use: second.
	estimates [Paths]estimate
	second    *estimate
	// unconfirmed is set while copies on the second path are overdue, and until the first report of a copy.
	unconfirmed bool
	// begun is the time since which copies have left on the second path.
	begun  time.Time
	outage outage
	// credit is the number of bytes that the budget permits to copy.
	credit float64
	probe  probe
	// reported is the arrival of the last report, which was made at reportTime. It is zero before the first one.
	// unreported is the departure of the first packet that left since.
	reported   time.Time
	reportTime uint32
	unreported time.Time
	stats      Stats
	history    history
}

// Stats describe the copies and the paths.
type Stats struct {
	// Sent counts all packets, Copied the copies by class.
	Sent   Count
	Copied [Classes]Count
	// Outages counts outages of the primary path.
	Outages uint64
}

// Count counts packets and their bytes on the wire.
type Count struct{ Packets, Bytes uint64 }

func (c *Count) add(bytes int) {
	c.Packets++
	c.Bytes += uint64(bytes)
}

// Second describes the second path.
type Second struct {
	State State
	// Rate is the estimate in bit/s.
	Rate float64
	// Loss is the share of copies lost, 0 to 1. Queue is the delay above the shortest of the last minutes. Both are
	// those of the last evaluation.
	Loss  float64
	Queue time.Duration
	// Behind is by how much the last reported copy was later than the last reported packet of the primary path,
	// compared from their departures on. It is negative if the second path is faster.
	Behind time.Duration
}

// New returns a Selector of the mode Auto or All.
func New(mode Mode, now time.Time) *Selector {
	s := &Selector{mode: mode, unconfirmed: true, credit: maxCredit / 4, probe: probe{credit: probeCredit, begun: now}}
	s.history.start = now
	for i := range s.paths {
		s.paths[i], s.estimates[i] = newPathState(&s.origin), newEstimate(now)
	}
	s.second = &s.estimates[1]
	return s
}

// SetMode changes the mode.
func (s *Selector) SetMode(mode Mode) { s.mode = mode }

// Resume begins to select again after a time without a second path, in which the Selector has seen no packets. Reports
// that are missing from this time show no outage, and an outage before has ended.
func (s *Selector) Resume(now time.Time) {
	s.unreported = time.Time{}
	s.begin(now)
}

// begin begins to copy on the second path. Losses on it in a former time do not count, and an outage of the primary
// path has ended.
func (s *Selector) begin(now time.Time) {
	second := Paths - 1 - s.primary
	s.second = &s.estimates[second]
	s.second.resume(now)
	s.paths[second].resume(s.history.sums[second], now)
	s.unconfirmed, s.begun = true, now
	s.outage.on, s.outage.fine = false, time.Time{}
}

// Select decides whether a packet is copied, and records its departure on the primary path with the given number.
// stream is the state of the packet's stream.
func (s *Selector) Select(p *Packet, stream *Stream, primary uint8, now time.Time) (copied bool) {
	if primary >= Paths {
		return false
	}
	if primary != s.primary {
		s.primary = primary
		s.begin(now)
	}
	s.second.step(now)
	s.expect(now)
	if p.Class == Other && p.Begins && s.mode == Auto && !s.outage.on {
		s.probe.step(s.second, now)
	}
	copied = s.choose(p, stream)
	p.Doubled = p.Class == Audio && s.unconfirmed && !s.outage.on
	s.stats.Sent.add(p.Size)
	s.probe.count(s.stats.Sent.Bytes, p.Size, s.outage.on, now)
	s.credit = min(s.credit+budgetShare*float64(p.Size), maxCredit)
	if copied {
		s.spend(p)
	}
	s.history.add(p, primary, copied, now)
	return copied
}

// expect begins an outage if reports do not arrive any more.
func (s *Selector) expect(now time.Time) {
	switch {
	case s.reported.IsZero():
	case s.unreported.IsZero():
		s.unreported = now
	case now.Sub(s.unreported) > unreportedPrimary+s.paths[s.primary].rtt:
		s.outage.begin(now)
	}
}

// choose decides whether a packet is copied, and sets the class of a packet that ends a frame. A frame of the lowest
// quality is copied as a whole or not at all, because part of a frame is useless.
func (s *Selector) choose(p *Packet, stream *Stream) bool {
	switch p.Class {
	case Padding:
		return false
	case Audio, Repair:
		return s.admits(p.Class)
	}
	if p.Begins {
		stream.whole = s.admits(p.Class)
	}
	if stream.whole && s.second.credit > overdraft[p.Class]*s.second.burst() {
		return true
	}
	if p.Ends && s.paths[s.primary].losses.share >= lossyPath && s.admits(FrameEnd) {
		p.Class = FrameEnd
		return true
	}
	// An outage may begin within a frame.
	return !p.Begins && s.outage.on && s.admits(p.Class)
}

// reserved is the part of the credit, in bursts of the second path and in maxCredit of the budget, that a packet of a
// class leaves to higher classes. overdraft is the same for the rest of a frame that has begun. Below zero the credit
// of the next 50 ms of each burst is used. Audio takes a small part of the smallest rate, so its debt stays small.
var (
	reserved  = [Classes]float64{Audio: -3, Lowest: -1, FrameEnd: 0.125, Repair: 0.125, Other: 0.5}
	overdraft = [Classes]float64{Lowest: -2, Other: 0.25}
)

// admits reports whether the rate of the second path and the budget have room for a class. The budget always has room
// for audio.
func (s *Selector) admits(class Class) bool {
	switch {
	case s.second.credit <= reserved[class]*s.second.burst():
		return false
	case s.outage.on, s.mode == All, class == Audio:
		return true
	case class == Other:
		return s.probe.on
	}
	return s.credit > max(0, reserved[class])*maxCredit
}

// spend accounts for a copy.
func (s *Selector) spend(p *Packet) {
	s.stats.Copied[p.Class].add(p.Size)
	s.second.credit -= float64(p.Size)
	switch {
	case s.mode != Auto || s.outage.on:
	case p.Class == Other:
		s.probe.credit -= float64(p.Size)
	default:
		// Audio alone may exceed the budget, but not delay other classes for long.
		s.credit = max(s.credit-float64(p.Size), -maxCredit)
	}
}

// Report processes a report of the peer. It reports whether an outage of the primary path begins: the packets in
// transit are lost, see Stranded. The error wraps ErrReport.
func (s *Selector) Report(packet []byte, now time.Time) (began bool, err error) {
	r, err := ParseReport(packet)
	if err != nil {
		return false, err
	}
	if now.Sub(s.reported) < overtaken && int32(r.Time-s.reportTime) <= 0 {
		// A later report has overtaken this one on the other path.
		return false, nil
	}
	s.reported, s.reportTime, s.unreported, s.second.lastReport = now, r.Time, time.Time{}, now
	primary, second := int(s.primary), Paths-1-int(s.primary)
	p := &s.paths[second]
	switch progress := p.report(&r, second, &s.history, now); {
	case progress == newer:
		s.second.arrived(p.last, p.rtt, s.probe.sent)
	case s.copiesLost(p, second, now):
		s.second.silenced()
	}
	s.unconfirmed = !p.known || p.late(&r, second, &s.history) > overdue
	if s.paths[primary].report(&r, primary, &s.history, now) == unclear || !s.paths[primary].known {
		return false, nil
	}
	return s.outage.judge(s.paths[primary].late(&r, primary, &s.history), now), nil
}

// copiesLost reports whether copies have been sent for a while, and none was reported as arrived.
func (s *Selector) copiesLost(p *pathState, path int, now time.Time) bool {
	sent := s.history.sums[path].packets - p.last.sent.packets
	return p.known && sent >= minEvaluated && now.Sub(p.progressed) > silentPath+p.rtt
}

// Stranded calls f for the packets that were sent on the primary path alone since the newest packet that arrived there,
// oldest first. They are to be retransmitted, because the peer cannot request packets after which nothing arrives.
func (s *Selector) Stranded(now time.Time, f func(ssrc uint32, sequence uint16)) {
	oldest := s.history.micros(now.Add(-strandedAge))
	p := &s.paths[s.primary]
	for position := max(p.newest+1, s.history.oldest()); position <= s.history.last; position++ {
		packet := s.history.at(position)
		if packet != nil && packet.media && !packet.copied && packet.at >= oldest {
			f(packet.ssrc, packet.sequence)
		}
	}
}

// Outage reports whether the primary path has an outage, and returns the rate in bit/s that the second path
// carries. During an outage the peer receives no more than that.
func (s *Selector) Outage() (rate float64, outage bool) { return s.second.rate, s.outage.on }

// Suspended reports whether arrivals say nothing about the rate of the primary path. Either an outage has begun on it:
// packets are lost, or arrive on a slower path. A congestion control that read them would fall to its lowest rate.
// Until the transport leaves a path that has failed, the second path bounds the rate (Outage). Or the second path has
// returned and is faster, so that copies arrive first, and others later, as if they had met a queue.
func (s *Selector) Suspended(now time.Time) bool {
	if s.outage.on {
		return now.Sub(s.outage.began) < suspension
	}
	return s.Second().Behind < -overtaking && now.Sub(s.begun) < mostOvertaking
}

// RepairsLost reports whether a retransmission that left now would be lost: in an outage of the primary path, while the
// second one has no room for it. Such retransmissions would only delay other packets in the pacer.
func (s *Selector) RepairsLost(now time.Time) bool {
	if !s.outage.on {
		return false
	}
	s.second.step(now)
	return !s.admits(Repair)
}

// Rate returns the rate in bit/s that a path was estimated to carry when it was the second one.
func (s *Selector) Rate(path uint8) float64 { return s.estimates[path%Paths].rate }

// Stats returns the counts since the beginning.
func (s *Selector) Stats() Stats {
	stats := s.stats
	stats.Outages = s.outage.count
	return stats
}

// Second returns the state of the second path.
func (s *Selector) Second() Second {
	second := Second{State: s.second.state, Rate: s.second.rate, Loss: s.second.loss, Queue: s.second.queue}
	if primary, other := &s.paths[s.primary], &s.paths[Paths-1-s.primary]; primary.known && other.known {
		second.Behind = other.last.transit - primary.last.transit
	}
	return second
}

// Add adds the counts of another Selector.
func (s *Stats) Add(other Stats) {
	s.Sent.Packets += other.Sent.Packets
	s.Sent.Bytes += other.Sent.Bytes
	for class := range s.Copied {
		s.Copied[class].Packets += other.Copied[class].Packets
		s.Copied[class].Bytes += other.Copied[class].Bytes
	}
	s.Outages += other.Outages
}
