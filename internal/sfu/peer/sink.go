package peer

import (
	"time"

	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/internal/forward/frames"
	"github.com/volsfu/volsfu/internal/forward/ingress"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/signal"
)

// NewBatch returns an empty batch for the engine of a node. The node's peers add their packets to the batch.
func NewBatch() egress.Batch { return new(transport.Batch) }

// mediaPeer adapts a peer connection to the data plane. mediaPeer implements forward.Peer.
type mediaPeer struct{ *transport.Peer }

// Post implements forward.Peer. If the batch is not from NewBatch, packets are sent at once.
func (p mediaPeer) Post(batch egress.Batch) {
	b, _ := batch.(*transport.Batch)
	p.Peer.Post(b)
}

// mediaSink passes received packets to the data plane: RTP and sender reports of a publisher to the ingress, and RTCP
// of a receiver to the receiver.
type mediaSink struct {
	transport.NoOpSink
	ingress  *ingress.Ingress
	receiver *egress.Receiver
	data     *dataLines
	chunks   *frames.Sender
	messages *messages
}

// Data implements transport.Sink.
func (s *mediaSink) Data(label string, message []byte, now time.Time) {
	if s.messages != nil && label == signal.MessageChannel {
		s.messages.take(message, now)
		return
	}
	if s.data != nil {
		s.data.take(label, message, now)
	}
}

// Acknowledged implements transport.Sink. The client's acknowledgements of data channel messages are converted to
// reports of arrivals.
func (s *mediaSink) Acknowledged(now time.Time) {
	if s.chunks == nil {
		return
	}
	for _, report := range s.chunks.Acknowledged(now) {
		s.receiver.Arrivals(report, now)
	}
}

// RTP implements transport.Sink.
func (s *mediaSink) RTP(ssrc uint32, packet []byte, info *transport.PacketInfo) {
	s.ingress.RTP(ssrc, packet, info)
}

// Repeated implements transport.Sink.
func (s *mediaSink) Repeated(ssrc uint32, sequence uint16, info *transport.PacketInfo) {
	s.ingress.Repeated(ssrc, sequence, info)
}

// Flush implements transport.Sink.
func (s *mediaSink) Flush() { s.ingress.Flush() }

// Signal implements transport.Sink.
func (s *mediaSink) Signal() { s.ingress.Signal() }

// Sent implements transport.Sink.
func (s *mediaSink) Sent(ssrc uint32, sequence uint16, kernel, hardware time.Time) {
	s.receiver.PacketSent(ssrc, sequence, kernel, hardware)
}

// RTCP implements transport.Sink. A sender report (RFC 3550, type 200) describes the streams of a publisher and may
// also contain report blocks.
func (s *mediaSink) RTCP(packet []byte, now time.Time) {
	const senderReport = 200
	if packet[1] == senderReport {
		s.ingress.RTCP(packet, now)
	}
	s.receiver.RTCP(packet, now)
}
