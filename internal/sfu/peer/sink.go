package peer

import (
	"time"

	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/internal/forward/frames"
	"github.com/volsfu/volsfu/internal/forward/ingress"
	"github.com/volsfu/volsfu/internal/transport"
)

// NewBatch returns an empty batch for the engine of a node: peers of the node leave their packets to such batches.
func NewBatch() egress.Batch { return new(transport.Batch) }

// mediaPeer is a peer connection as the data plane sees it. It implements forward.Peer.
type mediaPeer struct{ *transport.Peer }

// Post implements forward.Peer. If the batch is not from NewBatch, the packets leave at once.
func (p mediaPeer) Post(batch egress.Batch) {
	b, _ := batch.(*transport.Batch)
	p.Peer.Post(b)
}

// mediaSink hands what arrives to the data plane: what a publisher sends or says to the ingress, what a receiver says
// to the receiver.
type mediaSink struct {
	ingress  *ingress.Ingress
	receiver *egress.Receiver
	data     *dataLines
	chunks   *frames.Sender
}

// Data implements transport.Sink.
func (s *mediaSink) Data(label string, message []byte, now time.Time) {
	if s.data != nil {
		s.data.take(label, message, now)
	}
}

// Acknowledged implements transport.Sink. What the client acknowledges of what it is sent over data channels stands
// for reports of arrivals.
func (s *mediaSink) Acknowledged(now time.Time) {
	if s.chunks == nil {
		return
	}
	for _, report := range s.chunks.Acknowledged(now) {
		s.receiver.RTCP(report, now)
	}
}

// RTP implements transport.Sink.
func (s *mediaSink) RTP(ssrc uint32, packet []byte, info *transport.PacketInfo) {
	s.ingress.RTP(ssrc, packet, info)
}

// Flush implements transport.Sink.
func (s *mediaSink) Flush() { s.ingress.Flush() }

// Signal implements transport.Sink.
func (s *mediaSink) Signal() { s.ingress.Signal() }

// Sent implements transport.Sink.
func (s *mediaSink) Sent(ssrc uint32, sequence uint16, kernel, hardware time.Time) {
	s.receiver.PacketSent(ssrc, sequence, kernel, hardware)
}

// RTCP implements transport.Sink. Sender reports (RFC 3550 type 200) speak of what the client sends; they may carry
// report blocks, too.
func (s *mediaSink) RTCP(packet []byte, now time.Time) {
	const senderReport = 200
	if packet[1] == senderReport {
		s.ingress.RTCP(packet, now)
	}
	s.receiver.RTCP(packet, now)
}
