package redundancy

import "time"

const (
	// transitMemory is the time for which the longest transit of the primary path is remembered, baseMemory that of the
	// shortest transit of the second path. Each is kept for between once and twice this time.
	transitMemory = time.Second
	baseMemory    = time.Minute
	// overdue is the time after which a packet that should have arrived shows an outage: two ticks of a pacer of 2 ms,
	// a timer that is late by 1 ms, and a pause of 15 ms in which a wireless link repeats a frame.
	overdue = 20 * time.Millisecond
	// maxLonger bounds the longest transit above the shortest: packets that wait for a second in front of a dead link,
	// and arrive later, do not hide the next outage. Later packets miss the frame's deadline of 150 ms on many paths.
	maxLonger = 100 * time.Millisecond
	// lossInterval is the time over which losses are measured: 700 packets at 7 Mbit/s.
	lossInterval = time.Second
	// recovered is the time without an overdue packet after which an outage has ended. A second outage soon after the
	// first is likely.
	recovered = 200 * time.Millisecond
	// unreportedPrimary is the time after the first packet that no report covers, in addition to the round-trip time,
	// after which the primary path counts as failed: four reports are missing.
	unreportedPrimary = 4 * reportInterval
)

// pathState holds the sender's knowledge of one path.
type pathState struct {
	// known is set once a packet was reported as arrived. newest is the highest position reported.
	known  bool
	newest uint64
	// origin is the origin of transits.
	origin *origin
	// progressed is the time of the last report with a newer packet.
	progressed time.Time
	// shortest and longest are the extreme transits of the last minutes and of the last second.
	shortest, longest extreme
	last              sample
	// losses are those of the last complete interval, 1 before there is one.
	losses lossMeter
	// rtt is the time from the departure of the newest packet to its report, less the time that the receiver waited.
	rtt time.Duration
}

// origin is the transit from which others are counted: the first one of any path, in µs modulo 2^32. It contains the
// offset of the clocks.
type origin struct {
	known   bool
	transit uint32
}

// extreme is the smallest or largest value of between one and two intervals.
type extreme struct {
	sign          time.Duration
	begun         time.Time
	former, value time.Duration
}

// add adds a value. The first value begins the first interval.
func (e *extreme) add(value time.Duration, now time.Time, interval time.Duration) {
	value *= e.sign
	switch {
	case e.begun.IsZero() || now.Sub(e.begun) >= 2*interval:
		e.begun, e.former, e.value = now, value, value
	case now.Sub(e.begun) >= interval:
		e.begun, e.former, e.value = now, e.value, value
	default:
		e.value = max(e.value, value)
	}
}

// get returns the extreme value.
func (e *extreme) get() time.Duration { return max(e.former, e.value) * e.sign }

func newPathState(o *origin) pathState {
	return pathState{
		origin: o, shortest: extreme{sign: -1}, longest: extreme{sign: 1}, losses: lossMeter{share: 1},
	}
}

// resume begins to measure the path again after a time in which no copy was sent on it.
func (p *pathState) resume(sent sum, now time.Time) {
	p.last.sent, p.progressed, p.losses.begun = sent, now, false
}

// since returns the transit from a departure by the sender's clock to a time of the receiver's clock.
func (o *origin) since(departed int64, at uint32) time.Duration {
	return time.Duration(int32(at-uint32(departed)-o.transit)) * time.Microsecond
}

// progress is the statement of a report about a path.
type progress uint8

const (
	// unclear: the newest packet is not in the history.
	unclear progress = iota
	// none: no packet has arrived that is newer than all before.
	none
	newer
)

// report processes what a report says about the path.
func (p *pathState) report(r *Report, path int, h *history, now time.Time) progress {
	reported := &r.Paths[path]
	if !reported.Known || p.known && reported.Packets == p.last.packets {
		return none
	}
	position, ok := h.find(reported.SSRC, reported.Sequence)
	if !ok {
		return unclear
	}
	packet := h.at(position)
	switch {
	case packet.primary != uint8(path) && !packet.copied:
		return unclear
	case p.known && position <= p.newest:
		return none
	}
	if !p.origin.known {
		*p.origin = origin{true, reported.Arrived - uint32(packet.at)}
	}
	transit := p.origin.since(packet.at, reported.Arrived)
	p.known, p.newest, p.progressed = true, position, now
	p.shortest.add(transit, now, baseMemory)
	p.longest.add(transit, now, transitMemory)
	waited := time.Duration(int32(r.Time-reported.Arrived)) * time.Microsecond
	p.rtt = max(now.Sub(h.time(packet.at))-max(waited, 0), 0)
	p.last = sample{
		now: now, arrived: reported.Arrived, sent: packet.sums[path], packets: reported.Packets,
		transit: transit, queue: transit - p.shortest.get(),
	}
	p.losses.add(&p.last)
	return newer
}

// lossMeter measures the share of packets that are lost.
type lossMeter struct {
	begun   bool
	first   time.Time
	sent    uint32
	packets uint32
	share   float64
}

// add adds a sample. Each lossInterval has a share of its own.
func (m *lossMeter) add(s *sample) {
	if m.begun && s.now.Sub(m.first) < lossInterval {
		return
	}
	if sent := s.sent.packets - m.sent; m.begun && sent > 0 {
		m.share = max(0, 1-float64(s.packets-m.packets)/float64(sent))
	}
	m.begun, m.first, m.sent, m.packets = true, s.now, s.sent.packets, s.packets
}

// late returns by how much a packet that was sent on the path after the newest one is overdue when the report is made.
// The first such packet may be lost, so the second one counts. The result is not positive if no packet is overdue.
func (p *pathState) late(r *Report, path int, h *history) time.Duration {
	following := 0
	for position := max(p.newest+1, h.oldest()); ; position++ {
		packet := h.at(position)
		if packet == nil {
			return 0
		}
		if packet.primary == uint8(path) || packet.copied {
			following++
		}
		if following == 2 {
			return p.origin.since(packet.at, r.Time) - min(p.longest.get(), p.shortest.get()+maxLonger)
		}
	}
}

// outage decides whether the primary path has an outage.
type outage struct {
	// on is set during an outage.
	on bool
	// began is the beginning of the last outage.
	began time.Time
	// fine is the time since which no packet is overdue, zero while one is.
	fine time.Time
	// count is the number of outages.
	count uint64
}

// judge processes a report, with the time by which a packet is overdue. judge reports whether an outage begins.
func (o *outage) judge(late time.Duration, now time.Time) (begins bool) {
	switch {
	case late > overdue:
		o.fine = time.Time{}
		return o.begin(now)
	case o.fine.IsZero():
		o.fine = now
	case now.Sub(o.fine) >= recovered:
		o.on = false
	}
	return false
}

// begin begins an outage, and reports whether there was none.
func (o *outage) begin(now time.Time) bool {
	if o.on {
		return false
	}
	o.on, o.began = true, now
	o.count++
	return true
}
