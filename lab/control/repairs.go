package control

import (
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/feedback"
)

const (
	// minRepeat is the least time between two retransmissions of one packet.
	minRepeat = 5 * time.Millisecond
	// kept is the time for which packets are kept for retransmission, the server's default.
	kept = time.Second
	// paddingSize is the size of a padding packet on the wire: a retransmission of a recent full packet.
	paddingSize = fragmentSize + originalSize + congestion.PacketOverhead
)

// repair identifies a packet to be retransmitted.
type repair struct {
	tile     int
	sequence int64
}

// repeat answers a NACK for a packet, immediately or when the pacer admits the retransmission.
func (s *server) repeat(tile int, number uint16, now time.Duration) {
	if s.noRTX {
		return
	}
	st := s.streams[tile]
	sequence := st.next - 1 - int64(uint16(st.next-1)-number)
	if sequence < max(0, st.next-maxSent) {
		return
	}
	sent, rtt := &st.sent[sequence%maxSent], s.rtt()
	if sent.frame.dropped || now-sent.repeated < max(rtt, minRepeat) ||
		!feedback.Answerable(at(sent.at), at(now), rtt) {
		return
	}
	switch r := (repair{tile, sequence}); {
	case s.AdmitRepair(now):
		s.resend(r, now)
	case s.HoldRepair(r):
		sent.repeated = sent.at + s.repairLifetime()
	}
}

// rtt returns the round-trip time, queues included.
func (s *server) rtt() time.Duration { return max(s.path, s.Stats().RTT) }

// repairLifetime returns how long after its first transmission a packet is still retransmitted: a packet requested
// in time arrives at most one round trip after the deadline. If packets are delayed by a queue, both times include the
// delay.
func (s *server) repairLifetime() time.Duration { return s.frameLifetime() + s.path }

// frameLifetime returns how long after the first packet of a frame the other packets still leave in time: until the
// deadline, extended by the possible delay of the first packet.
func (s *server) frameLifetime() time.Duration {
	late := max(s.rtt(), s.LongestTrip()) - s.path
	_, deadline := nack.Repair(s.path, late)
	return deadline + late
}

// resend retransmits a packet unless the packet has expired.
func (s *server) resend(r repair, now time.Duration) {
	sent := &s.streams[r.tile].sent[r.sequence%maxSent]
	if sent.frame.dropped || now-sent.at > s.repairLifetime() {
		return
	}
	sent.repeated = now
	size := sent.frame.size(sent.index) + congestion.PacketOverhead + originalSize
	s.SpendRepair(size)
	s.transmit(sent.fragment, r.sequence, feedback.Retransmission, size, now)
}

// pad sends the padding that the current probe requests in this tick. Padding consists of retransmissions, which a
// receiver without RTX does not accept.
func (s *server) pad(now time.Duration) {
	s.Pad(func() bool {
		if s.noRTX || now-s.latest > kept {
			return false
		}
		s.transmit(fragment{}, 0, feedback.Probe, paddingSize, now)
		return true
	})
}
