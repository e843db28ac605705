package switching

import "time"

const (
	// maxJump is the largest step of an input number that still counts as loss. Beyond it the track has restarted its numbering: the
	// distance of random 16-bit numbers exceeds it in half of all cases, while 16,384 packets are 3.3 s at 5,000 packets/s.
	maxJump = 1 << 14
	// maxAhead is the distance from the highest number sent from which a 16-bit number would read as an older one.
	maxAhead = 1 << 15
)

// Switcher numbers one outgoing stream. It is not safe for concurrent use.
type Switcher struct {
	cutAfter time.Duration
	history  history
	endings  endings
	sent     window
	time     timeline
	// next is the first output number that is not reserved. It is extended: the receiver sees its low 16 bits.
	next int64
	// parity is the number of parity packets per source packet that frames are planned with.
	parity float64

	// active is what feeds the slot. While open, the newest run is its, and takes further frames; otherwise the track goes on in a new run
	// at its next frame that opens.
	active Source
	open   bool
	// ended says that no frame of the open run is under way, as far as is known: true for framed tracks, whose frames are reserved whole.
	ended bool
	// heard is when the newest packet of the open run came.
	heard time.Time

	handover handover
}

// New returns a Switcher that forwards nothing until a source is selected.
func New(cfg Config) *Switcher {
	if cfg.ClockRate == 0 {
		cfg.ClockRate = DefaultClockRate
	}
	if cfg.CutAfter <= 0 {
		cfg.CutAfter = DefaultCutAfter
	}
	return &Switcher{
		cutAfter: cfg.CutAfter,
		next:     int64(cfg.FirstSequence),
		sent:     window{newest: int64(cfg.FirstSequence) - 1},
		time:     timeline{rate: float64(cfg.ClockRate), newest: cfg.FirstTimestamp},
	}
}

// Select makes the source feed the slot from its next suitable frame on, in place of whatever was selected before. Until then the active
// one goes on. Track 0 ends the active one at the end of the frames that it has begun. Selecting the active source cancels a pending switch.
//
// A caller with a cache should then offer the packets of the newest frame of the new track, if that frame is recent, beginning with its opening
// one: either the switch happens there, or the Switcher learns that the track is alive, and does not begin another frame of the active one first.
func (s *Switcher) Select(src Source, now time.Time) {
	if src.Track == 0 {
		src = Source{}
	}
	h := &s.handover
	switch {
	case src.is(s.active):
		s.active = src
		*h = handover{}
		return
	case h.pending && src.is(h.source):
		h.source = src
		return
	case src.Track == s.active.Track:
		s.open = false
	}
	*h = handover{pending: true, source: src}
	if src.Track != 0 {
		return
	}
	if s.open && !s.ended {
		h.waiting = now
		return
	}
	s.stop()
}

// SetParity sets how much parity is forwarded from the next frame on: of each frame all source packets and the first ceil(share × SourcePackets) parity packets,
// or as many as there are. The others are dropped, and have no numbers. The share is 0 at first.
func (s *Switcher) SetParity(share float64) {
	// A share that is not a number is none.
	s.parity = 0
	if share > 0 {
		s.parity = min(share, maxFramePackets)
	}
}

// Active is the source that feeds the slot: the one selected last whose turn has come. It is the zero Source before the first, and after "off".
func (s *Switcher) Active() Source { return s.active }

// Pending is the source that was selected and has not begun yet; its track is 0 where a foreign frame is still being completed before "off".
func (s *Switcher) Pending() (Source, bool) { return s.handover.source, s.handover.pending }

// Packet decides about a packet of any track. Packets of a track must be given in the order of their arrival.
func (s *Switcher) Packet(p *Packet, now time.Time) Verdict {
	if !s.open || p.Track != s.active.Track {
		return s.outOfRun(p, now)
	}
	r := s.history.back(0)
	switch {
	case p.Sequence > r.last:
		return s.extend(r, p, now)
	case p.Opens && r.last-p.Sequence > maxJump:
		s.open = false
		return s.tryBegin(s.active, p, now)
	case p.Sequence >= r.first:
		return s.deliver(r, p)
	}
	return s.outOfRun(p, now)
}

// outOfRun decides about a packet that the open run does not take: it has a number reserved in an earlier run, or may begin a new one.
func (s *Switcher) outOfRun(p *Packet, now time.Time) Verdict {
	if r := s.history.find(p.Track, p.Sequence); r != nil {
		v := s.deliver(r, p)
		// The second copy of a packet begins nothing. A framed one is known by its frame number; a foreign one with a number
		// that has left the window comes from a track that restarted its numbering.
		if v.Action == Forward || !p.Framed && !s.sent.old(p.Sequence+r.offset) {
			return v
		}
	}
	switch {
	case s.handover.pending && p.Track == s.handover.source.Track:
		return s.tryBegin(s.handover.source, p, now)
	case s.open || p.Track != s.active.Track:
		return Verdict{}
	case s.handover.pending && s.yields(now):
		return Verdict{}
	}
	return s.tryBegin(s.active, p, now)
}

// deliver sends a packet under its reserved number, unless it was sent before, or its frame has ended.
func (s *Switcher) deliver(r *run, p *Packet) Verdict {
	number := p.Sequence + r.offset
	if !r.carries(p) || p.Frame < r.ended && s.Ended(p) || !s.sent.take(number) {
		return Verdict{}
	}
	return Verdict{Action: Forward, Sequence: uint16(number), Timestamp: p.Timestamp + r.timestamp, Marker: r.marked(p)}
}

// extend decides about a packet of the active track beyond what its run has reserved.
func (s *Switcher) extend(r *run, p *Packet, now time.Time) Verdict {
	if !p.consistent() || r.omits(p) {
		return Verdict{}
	}
	first, last := p.planned(s.parity)
	from := r.after(first)
	switch {
	case first-r.last > maxJump, p.Sequence-from+s.next-s.sent.newest >= maxAhead, r.framed && p.Framed && p.Frame <= r.frame:
		s.open = false
		return s.tryBegin(s.active, p, now)
	case s.handover.pending && s.mustYield(p, now):
		s.endRun(r, p, now)
		return Verdict{}
	}
	if from != r.last+1 {
		r = s.history.push(run{
			track: r.track, group: r.group,
			first: from, last: from - 1, offset: s.next - from,
			timestamp: r.timestamp,
			framed:    true, floor: r.frame, frame: r.frame,
		})
	}
	s.reserve(r, p, last)
	s.begun(r, p, now)
	v := Verdict{}
	if p.Sequence <= r.last {
		v = s.deliver(r, p)
	}
	if s.ended && s.handover.pending && s.handover.source.Track == 0 {
		s.stop()
	}
	return v
}

// reserve gives numbers to what the newest run does not cover yet up to last, the last packet planned of the packet's frame.
func (s *Switcher) reserve(r *run, p *Packet, last int64) {
	if last > r.last {
		_, end := p.extent()
		r.last, r.surplus = last, end-last
	}
	s.next = r.last + r.offset + 1
}

// endRun ends the open run before a packet that it does not take any more. If the packet opens a foreign frame, while the end of the one before
// was not seen, then what is missing between them belongs to that one, and keeps its numbers.
func (s *Switcher) endRun(r *run, p *Packet, now time.Time) {
	if p.Opens && !s.ended && p.Sequence > r.last+1 {
		r.last = p.Sequence - 1
		s.next = r.last + r.offset + 1
		s.time.advance(p, now)
	}
	s.open = false
	if s.handover.source.Track == 0 {
		s.stop()
	}
}

// begun keeps the books of a packet that advanced the newest run.
func (s *Switcher) begun(r *run, p *Packet, now time.Time) {
	if p.Framed {
		r.framed, r.frame = true, p.Frame
	}
	s.ended = p.Framed || p.Marker || p.Last
	s.heard = now
	s.time.advance(p, now)
}

// tryBegin decides about a packet of a source that waits for a frame to begin with.
func (s *Switcher) tryBegin(src Source, p *Packet, now time.Time) Verdict {
	if src.NeedsKey && !(p.Opens && p.Key) {
		return Verdict{WantKey: true}
	}
	if !p.Opens || !p.consistent() {
		return Verdict{}
	}
	pending := s.handover.pending && src.is(s.handover.source)
	newest, known := s.history.newestFrame(src.Group)
	if known && p.Framed && p.Frame <= newest {
		if pending {
			s.missed(p, now)
		}
		return Verdict{}
	}
	if pending && s.open && !s.ended && !src.NeedsKey && !s.overdue(now) {
		s.missed(p, now)
		return Verdict{}
	}
	first, last := p.planned(s.parity)
	switch {
	case p.Sequence > last:
		// Parity beyond the plan begins nothing: without its source packets the frame is likely to be lost.
		return Verdict{}
	case !known || !p.Framed:
		newest = p.Frame - 1
	case pending:
		first = s.handover.owed(first, newest)
	}
	follows := s.history.len() > 0 && s.history.back(0).group == src.Group
	v := s.begin(src, p, first, newest, now)
	if follows {
		v.Unbegun = int(p.Frame - newest - 1)
	}
	if pending {
		s.handover, v.Switched = handover{}, true
	}
	return v
}

// begin starts a run with a packet that opens a frame of the source, at the input number first. It may carry frames above floor.
func (s *Switcher) begin(src Source, p *Packet, first, floor int64, now time.Time) Verdict {
	_, last := p.planned(s.parity)
	if p.Sequence-first+s.next-s.sent.newest >= maxAhead {
		s.release()
		first, _ = p.extent()
	}
	r := s.history.push(run{
		track: src.Track, group: src.Group,
		first: first, last: first - 1, offset: s.next - first,
		timestamp: s.time.join(src.Group, p, now),
		framed:    p.Framed, floor: floor,
	})
	s.reserve(r, p, last)
	s.active, s.open = src, true
	s.begun(r, p, now)
	return s.deliver(r, p)
}

// stop ends the active source: nothing is active, nothing pending.
func (s *Switcher) stop() {
	s.active, s.open, s.handover = Source{}, false, handover{}
}

// release gives back the numbers that are reserved above the highest one sent. Nobody outside has seen them yet.
func (s *Switcher) release() {
	if s.history.count == 0 {
		return
	}
	s.next = s.sent.newest + 1
	for i := range s.history.len() {
		r := s.history.back(i)
		begun := r.first+r.offset <= s.next
		if !begun {
			// Nothing was sent of it: all that came was parity beyond the plan.
			r.offset = s.next - r.first
		}
		if last := s.next - 1 - r.offset; last < r.last {
			r.last, r.surplus = last, 0
		}
		if begun {
			return
		}
	}
}

// Overrun says that the caller lost packets of the active track, so that its frame under way cannot be completed. The track goes on at its next
// frame that opens (at a key frame where it needs them). The rest of the broken frame is not sent, and the numbers reserved for it are
// given back, so that its receivers do not ask for what nobody has.
func (s *Switcher) Overrun(now time.Time) {
	if s.active.Track == 0 {
		return
	}
	if s.history.len() > 0 {
		r := s.history.back(0)
		before := r.last
		s.release()
		if r.framed && r.last < before {
			s.endings.add(endedFrame{r.track, r.frame})
		}
	}
	s.Skip(now)
}

// Skip says that the caller leaves out frames of the active track that have not begun. Frames that have begun are completed; the
// track goes on at its next frame that opens (at a key frame where it needs them), without a gap. A foreign frame has no known extent: it ends
// with the last packet given.
func (s *Switcher) Skip(time.Time) {
	s.open = false
	if s.handover.pending && s.handover.source.Track == 0 {
		s.stop()
	}
}
