package ingress

import (
	"slices"
	"time"

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
	// maxHeldPackets bounds the packets that one ingress holds: 200 Mbit/s for 150 ms with packets of 1,200 bytes.
	maxHeldPackets = 3072
	// restartDistance is the distance by which a frame number is below the newest number if the publisher has started
	// its numbers again.
	restartDistance = 1000
	// unrelatedAfter is the distance by which a timestamp is behind the newest if the connections do not share the
	// origin of timestamps: browsers choose another one for each connection.
	unrelatedAfter = 10 * time.Second
)

// takeovers are the streams of an ingress that wait for their first packet.
type takeovers struct {
	// waiting are the streams by SSRC, held the number of their packets.
	waiting map[uint32]*waiting
	held    int
}

// waiting is a stream that takes a track over with its first packet.
type waiting struct {
	track        *track.Track
	ssrc, repair uint32
	origin       uint32
	// injector is not nil if the packets come from an injector.
	injector *Injector
	held     []heldPacket
}

// heldPacket is a packet that waits, with a copy of its info.
type heldPacket struct {
	packet []byte
	info   transport.PacketInfo
	// framed is set for payload v1. frame is its number, index the index of the packet in the frame.
	framed    bool
	frame     uint32
	index     int64
	timestamp uint32
}

// verdict is the decision about the first packet of a stream that waits.
type verdict int

const (
	verdictWait verdict = iota
	// verdictDrop drops the packet: the former connection carries its frame.
	verdictDrop
	verdictTake
)

// await binds a stream at once if no other ingress has the track, and otherwise with its first packet. await reports
// false if the track or the ingress is closed.
func (i *Ingress) await(w *waiting) bool {
	i.set.binding.Lock()
	defer i.set.binding.Unlock()
	former := formerOf(w.track, i)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.takeovers.forget(w.track)
	if former == nil {
		return i.bindWaiting(w) != nil
	}
	if i.closed {
		return false
	}
	if i.takeovers.waiting == nil {
		i.takeovers.waiting = make(map[uint32]*waiting)
	}
	if i.takeovers.waiting[w.ssrc] != nil {
		i.takeovers.remove(w.ssrc)
	}
	i.takeovers.waiting[w.ssrc] = w
	return true
}

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

// bindWaiting binds a stream that no other ingress has, and returns its state, nil if the track or the ingress is
// closed. The caller holds the mutex.
func (i *Ingress) bindWaiting(w *waiting) *stream {
	i.bind(w.ssrc, w.repair, w.track)
	s := i.streams[w.ssrc]
	if s == nil || s.track != w.track {
		return nil
	}
	s.origin = w.origin
	if w.injector != nil {
		s.injector = w.injector
	}
	return s
}

// forget removes the stream that waits for a track, if there is one. The caller holds the mutex of the ingress, also in
// the functions below.
func (o *takeovers) forget(t *track.Track) {
	for ssrc, w := range o.waiting {
		if w.track == t {
			o.remove(ssrc)
		}
	}
}

// clear removes all streams that wait.
func (o *takeovers) clear() {
	for ssrc := range o.waiting {
		o.remove(ssrc)
	}
}

// remove removes a stream that waits, and ends its injector.
func (o *takeovers) remove(ssrc uint32) {
	if w := o.waiting[ssrc]; w.injector != nil {
		w.injector.end()
	}
	o.take(ssrc)
}

// take removes a stream that waits, and returns its packets.
func (o *takeovers) take(ssrc uint32) []heldPacket {
	w := o.waiting[ssrc]
	delete(o.waiting, ssrc)
	held := w.held
	o.held -= len(held)
	w.held = nil
	return held
}

// hold keeps a packet of a stream that waits. hold reports false for other SSRCs.
func (i *Ingress) hold(ssrc uint32, packet []byte, info *transport.PacketInfo) bool {
	o, p := &i.takeovers, &i.packet
	w := o.waiting[ssrc]
	if w == nil {
		return false
	}
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
	if o.held == maxHeldPackets {
		i.stats.Add(counters.LatePackets, 1)
		return true
	}
	w.held = append(w.held, h)
	if o.held++; o.held == 1 {
		i.wake()
	}
	return true
}

// settle lets the streams with packets that wait take their tracks over, as far as the former connections have no more
// frames. settle returns the time of the next attempt, zero if no packets wait. The caller holds no mutex, and calls
// Flush.
func (i *Ingress) settle(now time.Time) (next time.Time) {
	list := i.withHeldPackets()
	if len(list) == 0 {
		return time.Time{}
	}
	i.set.binding.Lock()
	defer i.set.binding.Unlock()
	for _, w := range list {
		i.decide(w, now)
	}
	if len(i.withHeldPackets()) > 0 {
		next = now.Add(holdInterval)
	}
	return next
}

// withHeldPackets returns the streams with packets that wait.
func (i *Ingress) withHeldPackets() (list []*waiting) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.takeovers.held == 0 {
		return nil
	}
	for _, w := range i.takeovers.waiting {
		if len(w.held) > 0 {
			list = append(list, w)
		}
	}
	return list
}

// decide drops the packets of frames that the former connection carries. It lets the stream take the track over if a
// packet is left and the former connection has no more frames. The caller holds the mutex of bindings.
func (i *Ingress) decide(w *waiting, now time.Time) {
	former := formerOf(w.track, i)
	for {
		first := i.firstHeld(w)
		if first == nil {
			return
		}
		switch former.yields(w.track, first, now) {
		case verdictWait:
			return
		case verdictDrop:
			i.dropFirst(w)
		case verdictTake:
			if former != nil {
				former.Unbind(w.track)
			}
			i.takeTrack(w, former != nil)
			return
		}
	}
}

// firstHeld returns the first packet of a stream that waits, nil if there is none.
func (i *Ingress) firstHeld(w *waiting) *heldPacket {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.takeovers.waiting[w.ssrc] != w || len(w.held) == 0 {
		return nil
	}
	return &w.held[0]
}

// dropFirst drops the first packet of a stream that waits.
func (i *Ingress) dropFirst(w *waiting) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(w.held) > 0 {
		w.held = w.held[1:]
		i.takeovers.held--
	}
}

// yields decides about the first packet that waits for a track of this ingress. A nil ingress is no connection.
func (i *Ingress) yields(t *track.Track, first *heldPacket, now time.Time) verdict {
	if i == nil {
		return verdictTake
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	s := streamOf(t)
	if s.ingress.Load() != i {
		return verdictTake
	}
	limit := i.set.cfg.NACK.Deadline
	silent, overdue := now.Sub(s.arrived) >= limit, now.Sub(first.info.At) >= limit
	if !first.framed {
		ahead := int32(first.timestamp - s.facts.timestamp)
		unrelated := float64(ahead) < -unrelatedAfter.Seconds()*float64(t.Codec().ClockRate)
		switch {
		case silent || ahead > 0 || unrelated:
			return verdictTake
		case overdue:
			return verdictDrop
		}
		return verdictWait
	}
	switch ahead := int32(first.frame - uint32(s.facts.newest)); {
	case silent && (ahead > 0 || ahead <= -restartDistance):
		return verdictTake
	case ahead <= 0 && (ahead > -restartDistance || overdue):
		return verdictDrop
	case ahead > 0 && (overdue || ahead == 1 && s.complete()):
		return verdictTake
	}
	return verdictWait
}

// takeTrack binds a stream that waits, and processes its packets. former is set if another connection had the track.
func (i *Ingress) takeTrack(w *waiting, former bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.takeovers.waiting[w.ssrc] != w || !i.begin() {
		return
	}
	held := i.takeovers.take(w.ssrc)
	if s := i.bindWaiting(w); s != nil && former {
		s.follows(held[0].index)
	}
	for n := range held {
		i.process(w.ssrc, held[n].packet, &held[n].info)
	}
	i.end()
}

// complete reports whether all packets of frames that have begun have arrived, except for parity. Only for payload v1.
func (s *stream) complete() bool {
	return s.facts.highest >= s.facts.end && (s.missing == nil || s.missing.Missing() == 0)
}

// follows states that the stream continues the track of another connection with a whole frame, of whose packets the
// one with an index arrives first. The packets before are requested if they do not arrive.
func (s *stream) follows(index int64) {
	s.lead, s.facts.whole = index, true
	s.track.TakeOver()
}
