package egress

import (
	"math/bits"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// minRepeat is the minimum time between two retransmissions of one packet, for round trips below minRepeat or
	// unknown. Requests that cross a retransmission delayed by queues may still be answered twice.
	minRepeat = 5 * time.Millisecond
	// repeatEntries is the number of retransmissions of a slot that are remembered to suppress repeats. The numbers of
	// a burst are close together, so none of 2,048 displaces another: a round trip of 100 ms at 190 Mbit/s.
	repeatEntries = 2048
)

// repeatTable remembers the latest retransmissions of a slot by the low bits of their sequence numbers. It takes 20 kB
// and is allocated for the first retransmission.
type repeatTable struct {
	numbers [repeatEntries]uint16
	// sent is the time of the retransmission in nanoseconds since the engine's start plus 1, so that 0 means never.
	sent [repeatEntries]int64
}

// recent reports whether the number was retransmitted within the interval before now, a time since the engine's start.
func (t *repeatTable) recent(number uint16, now int64, interval time.Duration) bool {
	if t == nil {
		return false
	}
	sent := t.sent[number%repeatEntries]
	return t.numbers[number%repeatEntries] == number && sent != 0 && now+1-sent < int64(interval)
}

// note remembers a retransmission.
func (t *repeatTable) note(number uint16, now int64) {
	t.numbers[number%repeatEntries], t.sent[number%repeatEntries] = number, now+1
}

// repair is a packet of a slot to retransmit when the pacer admits it.
type repair struct {
	slot   *Slot
	number uint16
	// unasked is set if the receiver has not requested the packet, which was lost in an outage of the path.
	unasked bool
}

// original is the packet with a sequence number of a slot, with a reference.
type original struct {
	*packetlog.Packet
	track *track.Track
}

// retransmit answers the requests of a receiver. Sequence numbers beyond Config.MaxNACKed and beyond the lookup limit
// of the receiver are counted and ignored.
func (s *Slot) retransmit(pairs []rtcp.NackPair) {
	r, w := s.receiver, s.receiver.writer
	w.read()
	rtt, worth := r.path.rtt(), r.path.resendTime()
	left := min(w.set.cfg.MaxNACKed, r.repairs.lookups)
	r.repairs.lookups -= left
	for _, pair := range pairs {
		asked := uint32(pair.LostPackets)<<1 | 1
		for number := pair.PacketID; asked != 0 && left > 0; asked, number = asked>>1, number+1 {
			if asked&1 == 0 {
				continue
			}
			left--
			repair{slot: s, number: number}.answer(rtt, worth)
			if w.outbox.writes >= groupWrites {
				w.rest()
			}
		}
		w.stats.counts[counters.NackedLimited] += uint64(bits.OnesCount32(asked))
	}
	r.repairs.lookups += left
	w.reschedule(r)
}

// answer retransmits the requested packet if it was sent on the slot, now or when the pacer admits it. answer counts
// the outcome when the outcome is known. worth is the time after its arrival for which a packet is retransmitted.
func (n repair) answer(rtt, worth time.Duration) {
	if outcome, done := n.answerNow(rtt, worth); done {
		n.slot.receiver.writer.stats.counts[outcome]++
	}
}

func (n repair) answerNow(rtt, worth time.Duration) (outcome counters.Counter, done bool) {
	s, r, w := n.slot, n.slot.receiver, n.slot.receiver.writer
	if s.repeats.recent(n.number, int64(w.at), max(rtt, minRepeat)) {
		// The request was made before the retransmission could arrive. A receiver that requests more often than once
		// per round trip, because a request may be lost, is answered once.
		return counters.NackedSuppressed, true
	}
	p, outcome, ok := n.find()
	if !ok {
		return outcome, true
	}
	defer p.Release()
	if s.switcher.Ended(&p.Facts) {
		return counters.NackedExpired, true
	}
	if arrived := w.set.clock.Started().Add(time.Duration(p.Order)); rtt > 0 &&
		!feedback.Answerable(arrived, w.now, rtt) {
		// The request was made before the packet could arrive, because the publisher's packet was late.
		return counters.NackedSuppressed, true
	}
	expires := time.Duration(p.Order) + worth
	switch {
	case w.at > expires:
		return counters.NackedExpired, true
	case r.path.sender.AdmitRepair(w.at):
		return n.repeatAsked(p), true
	case !r.path.sender.HoldRepair(n):
		return counters.NackedLimited, true
	}
	s.noteRepeat(n.number, int64(expires))
	return 0, false
}

// repeatHeld sends queued retransmissions that the pacer admits and discards expired ones.
func (r *Receiver) repeatHeld() {
	w := r.writer
	for {
		n, ok := r.path.sender.PopRepair()
		if !ok {
			return
		}
		p, outcome, ok := n.find()
		if ok {
			outcome = counters.NackedExpired
			if w.at <= time.Duration(p.Order)+r.path.resendTime() && !n.slot.switcher.Ended(&p.Facts) {
				outcome = n.repeatAsked(p)
			}
			p.Release()
		}
		if !n.unasked {
			w.stats.counts[outcome]++
		}
	}
}

// find returns the packet with the sequence number. If the packet cannot be sent, outcome is the reason.
func (n repair) find() (o original, outcome counters.Counter, ok bool) {
	id, sequence, ok := n.slot.switcher.Resolve(n.number)
	if !ok {
		return o, counters.NackedUnknown, false
	}
	w := n.slot.receiver.writer
	track := w.set.tracks.Find(id)
	if track == nil {
		return o, counters.NackedExpired, false
	}
	p := track.Log().Find(sequence)
	if p == nil {
		if sequence > track.Log().Gone() {
			return o, counters.NackedOwed, false
		}
		return o, counters.NackedExpired, false
	}
	if f := w.followers[track]; f != nil && p.Position >= f.position || n.slot.holds(track, p) {
		// The packet is sent for the first time in a moment.
		p.Release()
		return o, counters.NackedOwed, false
	}
	return original{p, track}, counters.NackedAnswered, true
}

// repeatAsked sends a requested packet again.
func (n repair) repeatAsked(p original) counters.Counter {
	outcome := n.resend(p, packetlog.Retransmission)
	if outcome == counters.NackedAnswered {
		n.slot.sent.retransmissions++
		if c := n.slot.receiver.path.reception.Load(); c != nil {
			c.requested++
		}
		n.slot.touch()
	}
	return outcome
}

// resend queues a packet on the slot's RTX stream, with the header that the packet had in the slot (RFC 4588 section
// 4). The sequence number of the RTX stream is assigned here, so that it closely follows the one before. It is used up
// even if the outlet refuses the packet. A packet that was not requested (packetlog.Probe) does not reduce the
// receiver's credit.
func (n repair) resend(p original, kind packetlog.Class) counters.Counter {
	s, number, w := n.slot, n.number, n.slot.receiver.writer
	form := s.formOf(p.track)
	timestamp, ok := s.switcher.ResolveTimestamp(number, p.Facts.Timestamp)
	marker, _ := s.switcher.ResolveMarker(number, &p.Facts)
	rtx := &s.retransmitter
	rtx.SSRC, rtx.PayloadType = s.outlet.RetransmissionSSRC(), form.retransmissionType
	switch {
	case rtx.SSRC == 0 || form.retransmissionType == 0:
		return counters.NackedRefused
	case !ok:
		return counters.NackedExpired
	case kind == packetlog.Retransmission && (s.receiver.path.routes.repairsLost(w.now) || !s.receiver.repairs.spend()):
		return counters.NackedLimited
	}
	h := &w.wire.header
	*h = rtp.Header{Version: 2, Marker: marker, SequenceNumber: number, Timestamp: timestamp}
	packed, err := rtx.Pack(w.wire.repair[:], h, w.wire.body(form, p.Packet))
	if err != nil {
		panic("a cached payload exceeds packetlog.MaxPayload")
	}
	if kind == packetlog.Retransmission {
		s.noteRepeat(number, int64(w.at))
	}
	s.receiver.number(h, len(packed), kind)
	if routes := s.receiver.path.routes; routes.copying() {
		routes.copies.copyRepair(h.SSRC, h.SequenceNumber, len(packed), kind, w.now)
	} else {
		routes.double(false)
	}
	w.outbox.writes++
	if err := s.outlet.Queue(h, packed); err != nil {
		w.stats.counts[counters.WriteErrors]++
		return counters.NackedRefused
	}
	if kind == packetlog.Retransmission {
		s.receiver.path.sender.SpendRepair(congestion.PacketOverhead + len(packed))
	}
	s.receiver.queued(len(packed))
	w.stats.counts[counters.SentPackets+counters.Counter(kind)]++
	w.stats.counts[counters.SentBytes+counters.Counter(kind)] += uint64(len(packed))
	return counters.NackedAnswered
}

// noteRepeat remembers a requested retransmission.
func (s *Slot) noteRepeat(number uint16, now int64) {
	if s.repeats == nil {
		s.repeats = &repeatTable{}
	}
	s.repeats.note(number, now)
}

// formOf returns the form in which the slot's peer receives a current or former track of the slot, zero if the peer
// cannot receive the track.
func (s *Slot) formOf(t *track.Track) wireForm {
	if a := s.attachment(t); a != nil && a.bound {
		return a.wireForm
	}
	form, _ := s.form(t)
	return form
}

// form returns the form in which the outlet's peer receives a track: under its codec's name, otherwise as opaque if it
// is video, otherwise wrapped as VP8 if every frame decodes independently.
func (s *Slot) form(t *track.Track) (f wireForm, ok bool) {
	f.payloadType, f.retransmissionType, ok = s.outlet.PayloadType(t.Codec().MIMEType)
	if ok || s.kind != volumetric.KindVideo {
		return f, ok
	}
	if f.payloadType, f.retransmissionType, ok = s.outlet.PayloadType(volumetric.MIMEOpaque); ok || t.NeedsKey() {
		return f, ok
	}
	f.payloadType, f.retransmissionType, f.vp8Wrapped = s.outlet.PayloadType(volumetric.MIMEVP8)
	return f, f.vp8Wrapped
}

// attachment returns the slot's attachment to a track, or nil if there is none.
func (s *Slot) attachment(t *track.Track) *attachment {
	for _, a := range s.attachments {
		if a.follower.track == t {
			return a
		}
	}
	return nil
}

// rtt returns the best known round-trip time, including queues, or 0. Reports of packet arrivals come first:
// connectivity checks are seconds apart and miss queues that build up between them.
func (p *path) rtt() time.Duration {
	if rtt := p.sender.Stats().RTT; p.sender.Reported() && rtt > 0 {
		return rtt
	}
	return p.checkedRTT()
}

// checkedRTT returns the round-trip time measured by the peer's connection, or otherwise by receiver reports.
func (p *path) checkedRTT() time.Duration {
	if rtt := p.peer.RTT(); rtt > 0 {
		return rtt
	}
	return p.measured.Value()
}

// trip returns the round-trip time of the empty path, and the additional delay of recent packets.
func (p *path) trip() (rtt, late time.Duration) {
	trip := max(p.rtt(), p.sender.LongestTrip())
	rtt = p.checkedRTT()
	return rtt, trip - rtt
}

// repairTime returns the time for which a packet is worth repairing for the receiver.
func (p *path) repairTime(rtt, late time.Duration) time.Duration {
	if p.deadline > 0 {
		return p.deadline
	}
	_, deadline := p.cfg.NACK.Repair(rtt, late)
	return deadline
}

// resendTime returns the time after its arrival for which a packet is retransmitted: a request that was made in time
// arrives at most a round trip after the deadline. Both include the queueing delay of recent packets.
func (p *path) resendTime() time.Duration {
	rtt, late := p.trip()
	return p.repairTime(rtt, late) + rtt + late
}
