package control

import (
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/feedback"
)

const (
	// minRepeat is the least time between two retransmissions of one packet.
	minRepeat = 5 * time.Millisecond
	// kept is how long packets are kept to be sent again, as the server does by default.
	kept = time.Second
	// paddingSize is a packet of padding on the wire: a retransmission of a recent full packet.
	paddingSize = fragmentSize + originalSize + congestion.PacketOverhead
)

// repair is a packet to be sent again.
type repair struct {
	tile     int
	sequence int64
}

// repeat answers a request for a packet, now or when the pacer lets it leave.
func (s *server) repeat(tile int, number uint16, now time.Duration) {
	if s.refuses {
		return
	}
	st := s.streams[tile]
	sequence := st.next - 1 - int64(uint16(st.next-1)-number)
	if sequence < max(0, st.next-maxSent) {
		return
	}
	sent, rtt := &st.sent[sequence%maxSent], s.rtt()
	if sent.frame.dropped || now-sent.repeated < max(rtt, minRepeat) || !feedback.Answerable(at(sent.at), at(now), rtt) {
		return
	}
	switch r := (repair{tile, sequence}); {
	case s.AdmitRepair(now):
		s.resend(r, now)
	case s.HoldRepair(r):
		sent.repeated = sent.at + s.worth()
	}
}

// rtt is the round trip, queues included.
func (s *server) rtt() time.Duration { return max(s.path, s.Stats().RTT) }

// worth is how long after it was sent a packet is sent again: what was asked for in time arrives a round trip after the deadline at most. Both are those of packets
// that a queue held up, as long as there are some.
func (s *server) worth() time.Duration { return s.patience() + s.path }

// patience is how long after the first packet of a frame the others leave in time: until the deadline, and for as much longer as the first may have been late.
func (s *server) patience() time.Duration {
	late := max(s.rtt(), s.LongestTrip()) - s.path
	_, deadline := nack.Repair(s.path, late)
	return deadline + late
}

// resend sends a packet again, unless it is too late for that.
func (s *server) resend(r repair, now time.Duration) {
	sent := &s.streams[r.tile].sent[r.sequence%maxSent]
	if sent.frame.dropped || now-sent.at > s.worth() {
		return
	}
	sent.repeated = now
	size := sent.frame.size(sent.index) + congestion.PacketOverhead + originalSize
	s.SpendRepair(size)
	s.transmit(sent.fragment, r.sequence, feedback.Retransmission, size, now)
}

// pad sends padding as far as the probe under way asks for it in this tick. It is made of retransmissions, which a receiver without RTX does not take.
func (s *server) pad(now time.Duration) {
	s.Pad(func() bool {
		if s.refuses || now-s.latest > kept {
			return false
		}
		s.transmit(fragment{}, 0, feedback.Probe, paddingSize, now)
		return true
	})
}
