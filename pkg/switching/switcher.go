package switching

import "time"

const (
	// maxJump is the largest step of an input number that counts as loss. A larger step means that
	// the track has restarted its numbering: the distance of random 16-bit numbers exceeds maxJump
	// in half of all cases, and 16,384 packets are 3.3 s at 5,000 packets/s.
	maxJump = 1 << 14
	// maxAhead is the distance from the highest number sent at which a 16-bit number would be read
	// as an older number.
	maxAhead = 1 << 15
)

// Switcher numbers one outgoing stream. A Switcher is not safe for concurrent use.
type Switcher struct {
	cutAfter time.Duration
	history  history
	endings  endings
	sent     window
	time     timeline
	// next is the first output number that is not reserved. next is extended: the receiver sees its low 16 bits.
	next int64
	// parity is the number of parity packets per source packet for which frames are planned.
	parity float64

	// active is the source that feeds the slot. If open is set, the newest run belongs to active
	// and accepts further frames; otherwise the track continues in a new run at its next opening
	// frame.
	active Source
	open   bool
	// ended reports that the open run has no incomplete foreign frame. ended is always true for framed tracks, whose
	// frames are reserved whole.
	ended bool
	// latest is the arrival time of the newest packet of the open run.
	latest time.Time

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
		time:     timeline{rate: float64(cfg.ClockRate), newest: cfg.FirstTimestamp, kept: cfg.KeepTimestamps},
	}
}

// Select makes src feed the slot from its next suitable frame on, instead of any source selected
// before. Until then the active source continues. Track 0 stops the active source at the end of the
// frames that it has begun. Selecting the active source cancels a pending switch.
//
// A caller with a cache should then pass the packets of the newest frame of the new track, if that
// frame is recent, starting with its opening packet. Either the switch happens at this frame, or
// the Switcher learns that the track is alive and does not begin another frame of the active source
// first.
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

// SetParity sets the share of parity forwarded from the next frame on. Of each frame, all source
// packets and the first ceil(share × SourcePackets) parity packets are forwarded, or all parity
// packets if there are fewer. The other parity packets are dropped and have no numbers. The initial
// share is 0.
func (s *Switcher) SetParity(share float64) {
	// A share that is NaN counts as 0.
	s.parity = 0
	if share > 0 {
		s.parity = min(share, maxFramePackets)
	}
}

// Active returns the source that feeds the slot: the last selected source that has begun. Active is the zero Source
// before the first source begins and after "off".
func (s *Switcher) Active() Source { return s.active }

// Pending returns the selected source that has not begun yet. The track is 0 while a foreign frame is being completed
// before "off".
func (s *Switcher) Pending() (Source, bool) { return s.handover.source, s.handover.pending }

// Packet decides about a packet of any track. Packets of a track must be passed in the order of
// their arrival.
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

// outOfRun decides about a packet that the open run does not accept. The packet has a number
// reserved in an earlier run, or may begin a new run.
func (s *Switcher) outOfRun(p *Packet, now time.Time) Verdict {
	if r := s.history.find(p.Track, p.Sequence); r != nil {
		v := s.deliver(r, p)
		// A duplicate begins nothing. A framed duplicate is recognised by its frame number. A
		// foreign packet whose number has left the window comes from a track that restarted its
		// numbering.
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

// deliver sends a packet under its reserved number, unless it was sent before or its frame has
// ended.
func (s *Switcher) deliver(r *run, p *Packet) Verdict {
	number := p.Sequence + r.offset
	if !r.carries(p) || p.Frame < r.ended && s.Ended(p) || !s.sent.mark(number) {
		return Verdict{}
	}
	return Verdict{Action: Forward, Sequence: uint16(number), Timestamp: p.Timestamp + r.timestamp, Marker: r.marked(p)}
}

// extend decides about a packet of the active track beyond the reserved numbers of its run.
func (s *Switcher) extend(r *run, p *Packet, now time.Time) Verdict {
	if !p.consistent() || r.omits(p) {
		return Verdict{}
	}
	first, last := p.planned(s.parity)
	from := r.after(first)
	switch {
	case first-r.last > maxJump,
		p.Sequence-from+s.next-s.sent.newest >= maxAhead,
		r.framed && p.Framed && p.Frame <= r.frame:
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

// reserve reserves numbers in the newest run up to last, the last planned packet of the packet's
// frame.
func (s *Switcher) reserve(r *run, p *Packet, last int64) {
	if last > r.last {
		_, end := p.extent()
		r.last, r.surplus = last, end-last
	}
	s.next = r.last + r.offset + 1
}

// endRun ends the open run before a packet that the run no longer accepts. If the packet opens a
// foreign frame, and the end of the previous frame was not seen, the missing packets between them
// belong to the previous frame and keep their numbers.
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

// begun updates the state after a packet that advanced the newest run.
func (s *Switcher) begun(r *run, p *Packet, now time.Time) {
	if p.Framed {
		r.framed, r.frame = true, p.Frame
	}
	s.ended = p.Framed || p.Marker || p.Last
	s.latest = now
	s.time.advance(p, now)
}

// tryBegin decides about a packet of a source that waits for a frame at which to begin.
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
		// Parity beyond the plan begins no frame: without its source packets the frame is likely to
		// be lost.
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

// begin starts a run with a packet that opens a frame of the source, at input number first. The run
// may carry frames above floor.
func (s *Switcher) begin(src Source, p *Packet, first, floor int64, now time.Time) Verdict {
	_, last := p.planned(s.parity)
	if p.Sequence-first+s.next-s.sent.newest >= maxAhead {
		s.release()
		first, _ = p.extent()
	}
	if s.history.runs == nil {
		s.history.runs, s.sent.words = new([runLimit]run), new([windowSize / 64]uint64)
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

// stop ends the active source. Afterwards no source is active or pending.
func (s *Switcher) stop() {
	s.active, s.open, s.handover = Source{}, false, handover{}
}

// release releases the reserved numbers above the highest number sent. No receiver has seen them
// yet.
func (s *Switcher) release() {
	if s.history.count == 0 {
		return
	}
	s.next = s.sent.newest + 1
	for i := range s.history.len() {
		r := s.history.back(i)
		begun := r.first+r.offset <= s.next
		if !begun {
			// Nothing of this run was sent: only parity beyond the plan arrived.
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

// Overrun reports to the Switcher that the caller lost packets of the active track, so that the
// current frame cannot be completed. The track continues at its next opening frame, or key frame if
// it needs one. The rest of the broken frame is not sent, and its reserved numbers are released, so
// that receivers do not request packets that do not exist.
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

// Skip reports to the Switcher that the caller omits frames of the active track that have not
// begun. Frames that have begun are completed. The track continues without a gap at its next
// opening frame, or key frame if it needs one. A foreign frame has no known extent: it ends with
// the last packet passed.
func (s *Switcher) Skip(time.Time) {
	s.open = false
	if s.handover.pending && s.handover.source.Track == 0 {
		s.stop()
	}
}
