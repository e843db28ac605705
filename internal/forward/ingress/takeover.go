package ingress

import (
	"slices"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/payload"
)

// A publisher that moves to another server sends frames up to one over the former connection, and later frames over the
// next. Both connections of a track are known for a while. The track stays bound to the former connection until the
// first packet of the next one takes the track over. Paths differ in length, so that packets of the next connection may
// arrive before the last ones of the former. They are held until the former frames are complete, at most for the
// deadline of repairs (feedback.NACKConfig.Deadline), after which receivers give up a frame.

const (
	// holdInterval is the interval at which the goroutine looks whether the former frames are complete.
	holdInterval = 5 * time.Millisecond
	// minLooks is the number of looks after which a silent former connection has no more frames: its packets have been
	// read, if there are any.
	minLooks = 3
	// restartDistance is the distance by which a frame number is below the newest number if the publisher has started
	// its numbers again.
	restartDistance = 1000
	// unrelatedAfter is the distance by which a timestamp is behind the newest if the connections do not share the
	// origin of timestamps: browsers choose another one for each connection.
	unrelatedAfter = 10 * time.Second
)

// takeovers are the streams of an ingress that wait for their first packet. The mutex of the ingress guards them.
type takeovers struct {
	ingress *Ingress
	waiting waitingStreams
	// looked is the time of the last look.
	looked time.Time
	// keeping is set while streams that stop keep packets.
	keeping bool
}

// verdict is the decision about the first packet of a stream that waits.
type verdict int

const (
	verdictWait verdict = iota
	// verdictDrop drops the packet: the former connection carries its frame.
	verdictDrop
	verdictTake
)

// formerOf returns the other ingress to which a track is bound, nil if there is none.
func formerOf(t *track.Track, i *Ingress) *Ingress {
	s := streamOf(t)
	if s == nil {
		return nil
	}
	if former := s.ingress.Load(); former != i {
		return former
	}
	return nil
}

// Carries reports whether a track is bound to a stream of this connection, and not to one of another connection.
func (i *Ingress) Carries(t *track.Track) bool {
	s := streamOf(t)
	return s != nil && s.ingress.Load() == i
}

// Succeed makes the former connection of a track stop after its newest frame, if the stream with an SSRC of this
// connection has carried frames of the former connection since the last call. Without Succeed, a connection with the
// longer path never takes a track over: the former connection always has the next frame first. Only a stream with the
// same origin stops: another source of the same mirror. A stream of another mirror, or of the publisher, takes the
// track over by itself.
func (i *Ingress) Succeed(ssrc uint32, t *track.Track) {
	origin, behind := i.takeovers.repeated(ssrc, t)
	if !behind {
		return
	}
	former := formerOf(t, i)
	if former == nil {
		return
	}
	former.mu.Lock()
	defer former.mu.Unlock()
	if s := streamOf(t); s.ingress.Load() == former && s.origin == origin {
		s.stops, s.resumes = true, time.Time{}
	}
}

// repeated reports whether a stream that waits for a track has carried a frame of the former connection since the last
// call, and returns the origin of the stream.
func (o *takeovers) repeated(ssrc uint32, t *track.Track) (origin uint32, behind bool) {
	o.ingress.mu.Lock()
	defer o.ingress.mu.Unlock()
	w := o.waiting.streams[ssrc]
	if w == nil || w.track != t || !w.behind {
		return 0, false
	}
	w.behind = false
	return w.origin, true
}

// keep keeps a packet of a frame after the last one of a stream that stops, and reports false for other packets. If no
// other connection takes the track over for the deadline of repairs from the first of these packets, the other
// connection has failed, or this program has stalled, and the stream resumes. The packet is i.packet, too.
func (o *takeovers) keep(s *stream, packet []byte, info *transport.PacketInfo, repaired bool) bool {
	if !s.stops || !s.later(&o.ingress.packet) {
		return false
	}
	if s.resumes.IsZero() {
		s.resumes = info.At.Add(o.ingress.set.cfg.NACK.Deadline)
	}
	s.kept = append(s.kept, keptPacket{slices.Clone(packet), *info, repaired})
	if len(s.kept) == maxHeldPackets || !info.At.Before(s.resumes) {
		o.resume(s)
	} else if !o.keeping {
		o.keeping = true
		o.ingress.waker.wake()
	}
	return true
}

// resume ends the stop of a stream, and processes the packets that were kept.
func (o *takeovers) resume(s *stream) {
	kept := s.kept
	s.stops, s.kept = false, nil
	for n := range kept {
		o.ingress.receive(s, kept[n].packet, &kept[n].info, kept[n].repaired)
	}
}

// resumeDue resumes the streams that have stopped for the deadline of repairs. resumeDue returns the time at which the
// next stream resumes, zero if no packets are kept, and reports whether a stream has resumed.
func (o *takeovers) resumeDue(now time.Time) (next time.Time, resumed bool) {
	i := o.ingress
	i.mu.Lock()
	defer i.mu.Unlock()
	if !o.keeping || !i.begin() {
		return time.Time{}, false
	}
	for _, s := range i.bindings.streams {
		switch {
		case len(s.kept) == 0:
			continue
		case s.resumes.IsZero():
			s.resumes = now.Add(i.set.cfg.NACK.Deadline)
		case !now.Before(s.resumes):
			o.resume(s)
			resumed = true
			continue
		}
		next = earliest(next, s.resumes)
	}
	o.keeping = !next.IsZero()
	i.end()
	return next, resumed
}

// later reports whether a packet belongs to a frame after the newest one.
func (s *stream) later(p *rtp.Packet) bool {
	if !s.track.Framed() || s.track.Converted() {
		return int32(p.Timestamp-s.facts.timestamp) > 0
	}
	var d payload.Descriptor
	_, err := d.Unmarshal(p.Payload)
	return err == nil && int32(d.Frame-uint32(s.facts.newest)) > 0
}

// add binds a stream at once if no other ingress has the track, and otherwise with its first packet. A stream whose
// packets wait, also those that arrived before add, takes the track over with the next look of the goroutine. add
// reports false if the track or the ingress is closed. The caller holds no mutex.
func (o *takeovers) add(w *waiting) bool {
	i := o.ingress
	i.set.binding.Lock()
	defer i.set.binding.Unlock()
	former := formerOf(w.track, i)
	i.mu.Lock()
	defer i.mu.Unlock()
	if p := o.waiting.streams[w.ssrc]; p.equal(w) && (former != nil || len(p.held) > 0) {
		p.origin = w.origin
		return true
	}
	o.waiting.forget(w.track)
	o.waiting.remove(w.ssrc)
	if s := i.bindings.streams[w.ssrc]; s != nil && s.track != w.track {
		i.bindings.release(s)
	}
	packets := i.early.take(w.ssrc, i.set.clock.Now())
	if former == nil && len(packets) == 0 {
		return o.bind(w) != nil
	}
	if i.closed {
		return false
	}
	o.put(w)
	for n := range packets {
		o.hold(w.ssrc, packets[n].packet, &packets[n].info)
	}
	return true
}

// put adds a stream that waits.
func (o *takeovers) put(w *waiting) {
	o.waiting.put(w)
	if w.injector != nil {
		o.ingress.startReports()
	}
}

// displace ends the binding of a track that another ingress takes over. The stream waits, and may take the track back,
// unless it stops: the feed of a former server may begin later than that of the next.
func (o *takeovers) displace(t *track.Track) {
	i := o.ingress
	i.mu.Lock()
	defer i.mu.Unlock()
	s := streamOf(t)
	if s == nil || s.ingress.Load() != i {
		return
	}
	w := &waiting{track: t, ssrc: s.ssrc, repair: s.repair, origin: s.origin, injector: s.injector}
	if s.stops {
		// The other connection carries the frames.
		i.stats.Add(counters.DuplicatePackets, uint64(len(s.kept)))
		i.bindings.release(s)
		return
	}
	s.injector = nil
	i.bindings.release(s)
	o.waiting.remove(w.ssrc)
	o.put(w)
}

// bind binds a stream that no other ingress has, and returns its state, nil if the track or the ingress is closed.
func (o *takeovers) bind(w *waiting) *stream {
	o.ingress.early.bound(o.ingress.set.clock.Now())
	o.ingress.bind(w.ssrc, w.repair, w.track)
	s := o.ingress.bindings.streams[w.ssrc]
	if s == nil || s.track != w.track {
		return nil
	}
	s.origin = w.origin
	if s.stops = len(s.kept) > 0; s.stops {
		// The binding is repeated: the stream resumes.
		s.resumes = o.ingress.set.clock.Now()
		o.ingress.waker.wake()
	}
	if w.injector != nil {
		s.injector = w.injector
	}
	return s
}

// hold keeps a packet of a stream that waits. hold reports false for other SSRCs.
func (o *takeovers) hold(ssrc uint32, packet []byte, info *transport.PacketInfo) bool {
	w := o.waiting.streams[ssrc]
	if w == nil {
		return false
	}
	i, p := o.ingress, &o.ingress.packet
	if err := p.Unmarshal(packet); err != nil {
		i.stats.Add(counters.MalformedRTP, 1)
		return true
	}
	h := heldPacket{packet: slices.Clone(packet), info: *info, timestamp: p.Timestamp}
	if w.track.Framed() && !w.track.Converted() {
		var d payload.Descriptor
		if _, err := d.Unmarshal(p.Payload); err != nil {
			i.stats.Add(counters.MalformedPayload, 1)
			return true
		}
		h.framed, h.frame, h.index = true, d.Frame, int64(d.Index)
	}
	if !o.waiting.hold(w, h) {
		i.stats.Add(counters.LatePackets, 1)
	} else if o.waiting.held == 1 {
		i.waker.wake()
	}
	return true
}

// step is the look of the goroutine at the packets that wait. step returns the time of the next look, zero if no
// packets wait and no stream stops. The caller holds no mutex.
func (o *takeovers) step(now time.Time) (next time.Time) {
	list := o.list(now)
	if len(list) > 0 {
		o.settle(list, now)
	}
	next, resumed := o.resumeDue(now)
	if len(list) == 0 && !resumed {
		return next
	}
	o.ingress.Flush()
	if len(o.list(now)) > 0 {
		next = earliest(next, now.Add(holdInterval))
	}
	return next
}

// list returns the streams with packets that wait, and counts a look of the goroutine at them, none if now is zero.
// Looks are at least holdInterval apart: the goroutine also runs for other reasons.
func (o *takeovers) list(now time.Time) (list []*waiting) {
	o.ingress.mu.Lock()
	defer o.ingress.mu.Unlock()
	if o.waiting.held == 0 {
		return nil
	}
	list = o.waiting.filled()
	if now.Sub(o.looked) >= holdInterval {
		o.looked = now
		for _, w := range list {
			w.looks++
		}
	}
	return list
}

// settle lets streams take their tracks over, as far as the former connections have no more frames. The caller holds no
// mutex, and calls Flush.
func (o *takeovers) settle(list []*waiting, now time.Time) {
	o.ingress.set.binding.Lock()
	defer o.ingress.set.binding.Unlock()
	for _, w := range list {
		former := formerOf(w.track, o.ingress)
		for o.decide(w, former, now) == verdictDrop {
			o.drop(w)
		}
	}
}

// decide decides about the first packet of a stream that waits, and lets the stream take the track over. Without a
// packet the result is verdictWait. The caller holds the mutex of bindings.
func (o *takeovers) decide(w *waiting, former *Ingress, now time.Time) verdict {
	first, last, looks := o.ends(w)
	if first == nil {
		return verdictWait
	}
	v := verdictTake
	if former != nil {
		v = former.yields(w.track, first, last, looks, now)
	}
	if v == verdictTake {
		if former != nil {
			former.takeovers.displace(w.track)
		}
		o.takeOver(w, former != nil)
	}
	return v
}

// ends returns the first and the last packet of a stream that waits, nil if there is none, and the looks at them.
func (o *takeovers) ends(w *waiting) (first, last *heldPacket, looks int) {
	o.ingress.mu.Lock()
	defer o.ingress.mu.Unlock()
	if !o.waiting.has(w) || len(w.held) == 0 {
		return nil, nil, 0
	}
	return &w.held[0], &w.held[len(w.held)-1], w.looks
}

// drop drops the first packet of a stream that waits.
func (o *takeovers) drop(w *waiting) {
	o.ingress.mu.Lock()
	defer o.ingress.mu.Unlock()
	o.waiting.drop(w)
}

// takeOver binds a stream that waits, and processes its packets. former is set if another connection had the track.
func (o *takeovers) takeOver(w *waiting, former bool) {
	i := o.ingress
	i.mu.Lock()
	defer i.mu.Unlock()
	if !o.waiting.has(w) || !i.begin() {
		return
	}
	held := o.waiting.take(w)
	if s := o.bind(w); s != nil && former {
		s.follows(held[0].index)
	}
	for n := range held {
		i.process(w.ssrc, held[n].packet, &held[n].info)
	}
	i.end()
}

// yields decides about the first packet that waits for a track of this ingress, after that number of looks. Media
// without frame numbers continues with the first packet whose timestamp is later than those of the former connection,
// video when the former frame is complete.
func (i *Ingress) yields(t *track.Track, first, last *heldPacket, looks int, now time.Time) verdict {
	i.mu.Lock()
	defer i.mu.Unlock()
	s := streamOf(t)
	if s.ingress.Load() != i || s.arrived.IsZero() {
		return verdictTake
	}
	limit := i.set.cfg.NACK.Deadline
	silent := looks >= minLooks && now.Sub(s.arrived) >= limit
	overdue := time.Duration(looks)*holdInterval >= limit
	if !first.framed {
		later := func(h *heldPacket) bool { return int32(h.timestamp-s.facts.timestamp) > 0 }
		behind := float64(int32(s.facts.timestamp - first.timestamp))
		switch {
		case silent, behind > unrelatedAfter.Seconds()*float64(t.Codec().ClockRate):
			return verdictTake
		case later(first):
			if t.Audio() || overdue || s.complete() {
				return verdictTake
			}
		case later(last), now.Sub(first.info.At) >= limit:
			return verdictDrop
		}
		return verdictWait
	}
	switch ahead := int32(first.frame - uint32(s.facts.newest)); {
	case ahead <= 0 && ahead > -restartDistance:
		return verdictDrop
	case silent, overdue, ahead == 1 && s.complete():
		return verdictTake
	}
	return verdictWait
}

// complete reports whether all packets of frames that have begun have arrived, except for parity. Media without frame
// numbers has the marker at the end of a frame.
func (s *stream) complete() bool {
	ended := s.facts.marker
	if s.track.Framed() {
		ended = s.facts.highest >= s.facts.end
	}
	return ended && (s.missing == nil || s.missing.Missing() == 0)
}

// follows states that the stream continues the track of another connection with a whole frame, of whose packets the
// one with an index arrives first. The packets before are requested if they do not arrive.
func (s *stream) follows(index int64) {
	s.lead, s.facts.whole = index, true
	s.track.TakeOver()
}
