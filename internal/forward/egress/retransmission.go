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
	// minRepeat is the shortest time between two retransmissions of one packet, for round trips below it and for those
	// not known: requests that cross a retransmission on its way through queues would still be answered twice.
	minRepeat = 5 * time.Millisecond
	// repeatEntries is how many retransmissions of a slot are remembered to suppress repeats. The numbers of a burst
	// are close together, so none of 2,048 displaces another: a round trip of 100 ms at 190 Mbit/s.
	repeatEntries = 2048
)

// repeatTable remembers the latest retransmissions of a slot by the low bits of their numbers: 20 kB, which are taken
// with the first one.
type repeatTable struct {
	numbers [repeatEntries]uint16
	// sent is when, in nanoseconds since the engine's start, and one more, so that 0 is never.
	sent [repeatEntries]int64
}

// recent reports whether the number was retransmitted less than the interval before now, which counts from the engine's
// start.
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

// repair is a packet of a slot that is to be sent again when the pacer lets it.
type repair struct {
	slot   *Slot
	number uint16
}

// original is the packet that a number of a slot stands for, with a reference to it.
type original struct {
	*packetlog.Packet
	track *track.Track
}

// retransmit answers what a receiver has asked for, each number with the packet that it stands for. Numbers beyond
// Config.MaxNACKed, and beyond what the receiver may have looked up, are counted and ignored.
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
			repair{s, number}.answer(rtt, worth)
			if w.outbox.writes >= groupWrites {
				w.rest()
			}
		}
		w.stats.counts[counters.NackedLimited] += uint64(bits.OnesCount32(asked))
	}
	r.repairs.lookups += left
	w.reschedule(r)
}

// answer retransmits the packet that a number of the slot stands for, if it has been sent on the slot, now or when the
// pacer lets it. It counts what became of the request once that is known. worth is how long after it arrived a packet
// is retransmitted.
func (n repair) answer(rtt, worth time.Duration) {
	if outcome, done := n.answerNow(rtt, worth); done {
		n.slot.receiver.writer.stats.counts[outcome]++
	}
}

func (n repair) answerNow(rtt, worth time.Duration) (outcome counters.Counter, done bool) {
	s, r, w := n.slot, n.slot.receiver, n.slot.receiver.writer
	if s.repeats.recent(n.number, int64(w.at), max(rtt, minRepeat)) {
		// The request was made before the retransmission could get there. A receiver that asks more often than once per
		// round trip, because a request may get lost, is answered once.
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
		// The request was made before the packet could get there: the publisher had owed it.
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

// repeatHeld sends the retransmissions to a receiver that have waited, as far as the pacer lets them, and those not
// that have come to be of no use.
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
		w.stats.counts[outcome]++
	}
}

// find looks up what a number stands for. Where that cannot be sent, it tells why.
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
		// It goes out as a packet of its own in a moment.
		p.Release()
		return o, counters.NackedOwed, false
	}
	return original{p, track}, counters.NackedAnswered, true
}

// repeatAsked sends a packet again that was asked for.
func (n repair) repeatAsked(p original) counters.Counter {
	outcome := n.resend(p, packetlog.Retransmission)
	if outcome == counters.NackedAnswered {
		n.slot.sent.retransmissions++
		n.slot.touch()
	}
	return outcome
}

// resend queues a packet in the slot's RTX stream, with the header that it had in the slot (RFC 4588 section 4). The
// number in the RTX stream is taken here, so that it follows the one before it closely, and is taken once, whatever the
// outlet says: a number that the outlet refuses is spent. A packet that was not asked for (packetlog.Probe) is not
// taken from what the receiver may ask for.
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
	case kind == packetlog.Retransmission && !s.receiver.repairs.spend():
		return counters.NackedLimited
	}
	h := &w.wire.header
	*h = rtp.Header{Version: 2, Marker: marker, SequenceNumber: number, Timestamp: timestamp}
	packed, err := rtx.Pack(w.wire.repair[:], h, w.wire.body(form, p.Packet))
	if err != nil {
		panic("a cached payload exceeds the size that the cache has room for")
	}
	if kind == packetlog.Retransmission {
		s.noteRepeat(number, int64(w.at))
	}
	s.receiver.number(h, len(packed), kind)
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

// noteRepeat remembers a retransmission that was asked for.
func (s *Slot) noteRepeat(number uint16, now int64) {
	if s.repeats == nil {
		s.repeats = &repeatTable{}
	}
	s.repeats.note(number, now)
}

// formOf is how the slot's peer takes a track that feeds it, or has fed it, zero where it does not.
func (s *Slot) formOf(t *track.Track) wireForm {
	if a := s.attachment(t); a != nil && a.bound {
		return a.wireForm
	}
	form, _ := s.form(t)
	return form
}

// form asks the outlet how its peer takes a track: under its codec's name, or else as opaque where it is video, or
// disguised where a decoder would not have to read it.
func (s *Slot) form(t *track.Track) (f wireForm, ok bool) {
	f.payloadType, f.retransmissionType, ok = s.outlet.PayloadType(t.Codec().MIMEType)
	if ok || s.kind != volumetric.KindVideo {
		return f, ok
	}
	if f.payloadType, f.retransmissionType, ok = s.outlet.PayloadType(volumetric.MIMEOpaque); ok || t.NeedsKey() {
		return f, ok
	}
	f.payloadType, f.retransmissionType, f.disguised = s.outlet.PayloadType(volumetric.MIMEVP8)
	return f, f.disguised
}

// attachment finds the track among those that reach the slot.
func (s *Slot) attachment(t *track.Track) *attachment {
	for _, a := range s.attachments {
		if a.follower.track == t {
			return a
		}
	}
	return nil
}

// rtt is the round-trip time as well as it is known, queues included, else 0. What reports say of the packets
// themselves comes first: connectivity checks are seconds apart, and do not notice that a queue has built up.
func (p *path) rtt() time.Duration {
	if rtt := p.sender.Stats().RTT; p.sender.Reported() && rtt > 0 {
		return rtt
	}
	return p.checkedRTT()
}

// checkedRTT is the round-trip time as the peer's connection, or else receiver reports, measure it.
func (p *path) checkedRTT() time.Duration {
	if rtt := p.peer.RTT(); rtt > 0 {
		return rtt
	}
	return p.measured.Value()
}

// trip is the round trip of the path while that is empty, and how much longer packets have taken of late.
func (p *path) trip() (rtt, late time.Duration) {
	trip := max(p.rtt(), p.sender.LongestTrip())
	rtt = p.checkedRTT()
	return rtt, trip - rtt
}

// repairTime is how long a packet is worth repairing for the receiver.
func (p *path) repairTime(rtt, late time.Duration) time.Duration {
	if p.deadline > 0 {
		return p.deadline
	}
	_, deadline := p.cfg.NACK.Repair(rtt, late)
	return deadline
}

// resendTime is how long after it arrived a packet is retransmitted: what was asked for in time arrives a round trip
// after the deadline at most. Both are those of packets that a queue held up, as long as there are some.
func (p *path) resendTime() time.Duration {
	rtt, late := p.trip()
	return p.repairTime(rtt, late) + rtt + late
}
