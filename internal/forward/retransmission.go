package forward

import (
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// minRepeat is the shortest time between two retransmissions of one packet, for round trips below it and for those not known: requests that cross a
	// retransmission on its way through queues would still be answered twice.
	minRepeat = 5 * time.Millisecond
	// repeatEntries is how many retransmissions of a slot are remembered to suppress repeats. The numbers of a burst are close together, so none of 2,048
	// displaces another: a round trip of 100 ms at 190 Mbit/s.
	repeatEntries = 2048
)

// repeatTable remembers the latest retransmissions of a slot by the low bits of their numbers: 20 kB, which are taken with the first one.
type repeatTable struct {
	numbers [repeatEntries]uint16
	// sent is when, in nanoseconds since the engine's start, and one more, so that 0 is never.
	sent [repeatEntries]int64
}

// recent tells whether the number was retransmitted less than the interval before now, which counts from the engine's start.
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

// retransmit answers what a receiver has asked for, each number with the packet that it stands for.
func (w *writer) retransmit(s *Slot, pairs []rtcp.NackPair) {
	w.readClock()
	rtt := s.receiver.rtt()
	looked := 0
	for _, pair := range pairs {
		number := pair.PacketID
		for asked := uint32(pair.LostPackets)<<1 | 1; asked != 0; asked, number = asked>>1, number+1 {
			if asked&1 == 0 {
				continue
			}
			outcome := nackedLimited
			if looked++; looked <= w.engine.cfg.MaxNACKed {
				outcome = w.answer(s, number, rtt)
			}
			w.stats.counts[outcome]++
			if w.writes >= groupWrites {
				w.rest()
			}
		}
	}
}

// answer retransmits the packet that a number of the slot stands for, if it has been sent on the slot. It returns what became of the request.
func (w *writer) answer(s *Slot, number uint16, rtt time.Duration) counter {
	if s.repeats.recent(number, w.engine.since(w.now), max(rtt, minRepeat)) {
		// The request was made before the retransmission could get there. A receiver that asks more often than once per round trip, lest a request gets
		// lost, is answered once.
		return nackedSuppressed
	}
	id, sequence, ok := s.switcher.Resolve(number)
	if !ok {
		return nackedUnknown
	}
	track := w.engine.track(id)
	if track == nil {
		return nackedExpired
	}
	p := track.log.find(sequence)
	if p == nil {
		if sequence > track.log.gone.Load() {
			return nackedOwed
		}
		return nackedExpired
	}
	defer p.release()
	if f := w.followers[track]; f != nil && p.position >= f.position || s.holds(track, p) {
		// It goes out as a packet of its own in a moment.
		return nackedOwed
	}
	arrived := w.engine.started.Add(time.Duration(p.order))
	if rtt > 0 && !feedback.Answerable(arrived, w.now, rtt) {
		// The request was made before the packet could get there: the publisher had owed it.
		return nackedSuppressed
	}
	if w.now.Sub(arrived) > w.deadline(s.receiver, rtt)+rtt {
		return nackedExpired
	}
	outcome := w.resend(s, number, track, p, classRetransmission)
	if outcome == nackedAnswered {
		s.sent.retransmissions++
		w.touch(s)
	}
	return outcome
}

// deadline is how long a packet is worth repairing for a receiver. What was asked for in time arrives a round trip after that at most.
func (w *writer) deadline(r *Receiver, rtt time.Duration) time.Duration {
	nack := w.engine.cfg.NACK
	switch {
	case r.deadline > 0:
		return r.deadline
	case rtt > nack.LongRTT:
		return nack.LongDeadline
	default:
		return nack.Deadline
	}
}

// resend queues a packet in the slot's RTX stream, with the header that it had in the slot (RFC 4588 section 4). The number in the RTX stream is taken
// here, so that it follows the one before it closely, and is taken once, whatever the outlet says: a number that the outlet refuses is spent. What nobody has
// asked for (classProbe) is not taken from what the receiver may ask for.
func (w *writer) resend(s *Slot, number uint16, track *Track, p *packet, kind class) counter {
	payloadType := s.retransmissionType(track)
	timestamp, ok := s.switcher.ResolveTimestamp(number, p.facts.Timestamp)
	marker, _ := s.switcher.ResolveMarker(number, &p.facts)
	rtx := &s.retransmitter
	rtx.SSRC, rtx.PayloadType = s.outlet.RetransmissionSSRC(), payloadType
	switch {
	case rtx.SSRC == 0 || payloadType == 0:
		return nackedRefused
	case !ok:
		return nackedExpired
	case kind == classRetransmission && !s.receiver.spend():
		return nackedLimited
	}
	h := &w.repairHeader
	*h = rtp.Header{Version: 2, Marker: marker, SequenceNumber: number, Timestamp: timestamp}
	packed, err := rtx.Pack(w.repair[:], h, p.payload)
	if err != nil {
		panic("a cached payload exceeds the size that the cache has room for")
	}
	if kind == classRetransmission {
		s.noteRepeat(number, w.engine.since(w.now))
	}
	s.receiver.number(h, len(packed), kind, w.now)
	w.writes++
	if err := s.outlet.Queue(h, packed); err != nil {
		w.stats.counts[writeErrors]++
		return nackedRefused
	}
	w.queued(s.receiver, len(packed))
	w.stats.counts[sentPackets+counter(kind)]++
	w.stats.counts[sentBytes+counter(kind)] += uint64(len(packed))
	return nackedAnswered
}

// noteRepeat remembers a retransmission that was asked for.
func (s *Slot) noteRepeat(number uint16, now int64) {
	if s.repeats == nil {
		s.repeats = &repeatTable{}
	}
	s.repeats.note(number, now)
}

// retransmissionType is the payload type of retransmissions of a track's packets, 0 where there is none.
func (s *Slot) retransmissionType(t *Track) uint8 {
	if a := s.attachment(t); a != nil && a.bound {
		return a.retransmissionType
	}
	_, payloadType, _ := s.payloadType(t)
	return payloadType
}

// payloadType gives what the outlet's peer calls the track's codec. A video codec that it does not know by name travels as opaque.
func (s *Slot) payloadType(t *Track) (media, retransmission uint8, ok bool) {
	media, retransmission, ok = s.outlet.PayloadType(t.codec.MIMEType)
	if !ok && s.kind == volumetric.KindVideo {
		return s.outlet.PayloadType(volumetric.MIMEOpaque)
	}
	return media, retransmission, ok
}

// attachment finds the track among those that reach the slot.
func (s *Slot) attachment(t *Track) *attachment {
	for _, a := range s.attachments {
		if a.follower.track == t {
			return a
		}
	}
	return nil
}
